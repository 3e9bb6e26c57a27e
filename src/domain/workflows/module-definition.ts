/** The definition that a bundled module exports. */

/** @param module the namespace of a module. The default export of a CommonJS module is its `exports`. */
export function definitionIn(module: { default?: unknown }): unknown {
  const exported = module.default
  // What TypeScript and Babel write for `export default` marks itself so.
  return Object(exported).__esModule === true ? Object(exported).default : exported
}
