/** A text in one line: what workflows and people choose may have any characters, also those that control a terminal. */
export function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
}
