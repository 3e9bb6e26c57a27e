/**
 * Runs Python samples one after another in one interpreter, because loading it takes seconds: CPython compiled to
 * WebAssembly, with real sockets. Waiting for a socket suspends the interpreter (`--experimental-wasm-jspi`).
 */
import { loadPyodide } from 'pyodide'

export interface PythonRequest {
  source: string
  directory: string
  environment: Record<string, string>
}

/** Output as it is printed, then the exit code. */
export type PythonReport = { output: string } | { exitCode: number }

/** Like `python sample.py`, except that `sys.exit` does not end this process. */
const runner = `
import os, sys, traceback

def run(source, environment):
    os.environ.update(environment)
    os.chdir("/sample")
    try:
        exec(compile(source, "sample.py", "exec"), {"__name__": "__main__"})
        return 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        os.chdir("/")
`

const report = (message: PythonReport) => void process.send?.(message)
const print = (line: string) => report({ output: `${line}\n` })

const loaded = loadPyodide({ stdout: print, stderr: print }).then(async (python) => {
  await python.useNodeSockFS()
  python.FS.mkdirTree('/sample')
  python.runPython(runner)
  return python
})

process.on('message', async ({ source, directory, environment }: PythonRequest) => {
  const python = await loaded
  python.mountNodeFS('/sample', directory)
  const locals = python.toPy({ source, environment })
  const exitCode = await python.runPythonAsync('run(source, environment)', { locals })
  python.FS.unmount('/sample')
  report({ exitCode })
})

// Node would print the line that threw, which contains the whole interpreter.
process.on('uncaughtException', (error) => {
  print(String(error))
  process.exit(1)
})
