import { createHash } from 'node:crypto'

/** A page that renders `/openapi.json`: no framework, no external resources, script and style pinned by hash. */
export function docsPage(): { html: string; contentSecurityPolicy: string } {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Mayfly API</title>
<style>${STYLE}</style>
</head>
<body>
<header><h1>Mayfly API</h1><p id="about"></p><input id="find" type="search" placeholder="Find a path or a word" aria-label="Find"></header>
<main id="main"><p>Reading the document…</p></main>
<script>${SCRIPT}</script>
</body>
</html>
`
  const policy = `default-src 'none'; connect-src 'self'; script-src '${hashOf(SCRIPT)}'; style-src '${hashOf(STYLE)}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
  return { html, contentSecurityPolicy: policy }
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881 }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem }
input { font: inherit; width: 100%; padding: .5rem; box-sizing: border-box }
h2 { margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line) }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .4rem 0 }
summary { padding: .5rem .75rem; cursor: pointer }
summary code { font-weight: 600 }
.method { display: inline-block; min-width: 4.5rem; font: 600 .85rem ui-monospace, monospace }
.body { padding: 0 .75rem .75rem }
pre { background: var(--soft); padding: .75rem; overflow: auto; border-radius: .3rem; font-size: .85rem }
.who { opacity: .75; font-size: .9rem }
`

const SCRIPT = `
const make = (tag, text, name) => { const e = document.createElement(tag); if (text !== undefined) e.textContent = text; if (name) e.className = name; return e }
const show = (box, title, value) => { box.append(make('h4', title), Object.assign(make('pre'), { textContent: JSON.stringify(value, withRefs, 2) })) }
let schemas = {}
const withRefs = (key, value) => value && value.$ref ? schemas[value.$ref.split('/').pop()] : value
fetch('/openapi.json').then((r) => r.json()).then((doc) => {
  schemas = doc.components.schemas
  document.getElementById('about').textContent = doc.info.description + ' Version ' + doc.info.version + '.'
  const main = document.getElementById('main'); main.textContent = ''
  const groups = new Map()
  for (const [path, item] of Object.entries(doc.paths)) for (const [method, op] of Object.entries(item)) {
    const tag = (op.tags || ['other'])[0]
    if (!groups.has(tag)) groups.set(tag, [])
    groups.get(tag).push({ path, method, op })
  }
  for (const [tag, ops] of groups) {
    const section = make('section'); section.append(make('h2', tag)); main.append(section)
    for (const { path, method, op } of ops) {
      const box = make('details'); const head = make('summary')
      head.append(make('span', method.toUpperCase(), 'method'), make('code', path), make('span', ' ' + (op.summary || '')))
      const body = make('div', undefined, 'body')
      const who = !op.security || op.security.length === 0 ? 'No authentication.' : 'Bearer token' + (op.security[0].bearer || []).map((s) => ', scope ' + s).join('') + (op.security.length > 1 ? ', or the local host' : '') + '.'
      body.append(make('p', who, 'who'))
      if (op.parameters) show(body, 'Parameters', op.parameters)
      if (op.requestBody) show(body, 'Body', op.requestBody.content)
      for (const [status, reply] of Object.entries(op.responses || {})) show(body, 'Reply ' + status, reply.content || {})
      box.append(head, body); section.append(box)
      box.dataset.text = (path + ' ' + (op.summary || '')).toLowerCase()
    }
  }
  document.getElementById('find').addEventListener('input', (event) => {
    const word = event.target.value.toLowerCase()
    for (const box of document.querySelectorAll('details')) box.hidden = !box.dataset.text.includes(word)
  })
}).catch(() => { document.getElementById('main').textContent = 'The document could not be read.' })
`
