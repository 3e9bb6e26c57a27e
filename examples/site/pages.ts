/** The HTML of the example website. */

const style = `
  :root { color-scheme: light; font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff }
  body { max-width: 42rem; margin: 2rem auto; padding: 0 1rem }
  header { border-bottom: 2px solid #b45309; font-weight: 600; color: #92400e }
  table { width: 100%; border-collapse: collapse }
  th, td { padding: .4rem .6rem .4rem 0; border-bottom: 1px solid #ddd; text-align: left }
  th:last-child, td:last-child { text-align: right; padding-right: 0 }
  label { display: block; margin: 1rem 0 }
  input { display: block; width: 16rem; padding: .4rem; font: inherit }
  button { padding: .4rem 1rem; font: inherit }
  [role=alert] { color: #b91c1c }
  @media print { body { margin: 0; max-width: none } form { display: none } }`

/** @param content HTML of the page's main part. */
export function page(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>${style}
</style>
<body>
<header>Lanterns &amp; Kettles</header>
<main>
<h1>${title}</h1>
${content}
</main>
`
}

/** @param targets escaped as HTML. */
export function linkList(targets: string[]): string {
  return `<ul>${targets.map((target) => `<li><a href="${target}">${target}</a></li>`).join('')}</ul>`
}
