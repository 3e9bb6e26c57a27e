/**
 * Runs with a browser context need the scope `browser-contexts:use`. Keys that may queue runs and have another scope of
 * browser contexts get it, so that their callers go on; keys without any such scope were never meant to use contexts.
 */
export const script = () => `
UPDATE api_keys SET scopes = replace(scopes, ']', ',"browser-contexts:use"]')
  WHERE scopes LIKE '%"runs:write"%' AND scopes LIKE '%"browser-contexts:%'`
