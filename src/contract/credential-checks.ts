/** Checks the credentials of requests that take long: once a second, one check for all requests with the same credential. */

const checkMilliseconds = 1000

interface Checked {
  isValid(): Promise<boolean>
  requests: Set<AbortController>
}

export class CredentialChecks {
  readonly #checked = new Map<string, Checked>()
  #timer: NodeJS.Timeout | undefined

  /**
   * Aborts the request within about a second after its credential has become invalid.
   *
   * @param name of the credential: requests with the same name share `isValid`.
   * @returns a function that ends the checks.
   */
  add(name: string, isValid: () => Promise<boolean>, request: AbortController): () => void {
    const checked = this.#checked.get(name) ?? { isValid, requests: new Set() }
    checked.requests.add(request)
    this.#checked.set(name, checked)
    this.#timer ??= setInterval(() => this.#check(), checkMilliseconds).unref()
    return () => {
      checked.requests.delete(request)
      if (checked.requests.size === 0 && this.#checked.get(name) === checked) this.#checked.delete(name)
      if (this.#checked.size > 0) return
      clearInterval(this.#timer)
      this.#timer = undefined
    }
  }

  #check(): void {
    for (const { isValid, requests } of this.#checked.values()) {
      // An unavailable store does not make a credential invalid. The request gets the error from its own reads.
      const result = isValid().catch(() => true)
      void result.then((valid) => {
        if (!valid) for (const request of requests) request.abort()
      })
    }
  }
}
