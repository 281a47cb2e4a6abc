import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { AuditEntry } from '../src/api/api-v1.ts'
import { ROUTES, type RouteRule } from '../src/api/routes.ts'
import { ACTIONS } from '../src/domain/actions.ts'
import { OAUTH_ERRORS } from '../src/domain/oauth-problem.ts'
import { PROBLEMS } from '../src/domain/problems.ts'

const page = (name: string) => readFile(new URL(`../docs/reference/${name}`, import.meta.url), 'utf8')

/** The first cells of the rows of a table, without their backticks, with the second. */
function rows(text: string): [string, string][] {
  return [...text.matchAll(/^\| `([^`]+)` +\| ([^|]*?) +\|/gm)].map(([, first = '', second = '']) => [
    first,
    second,
  ])
}

test('docs/reference/errors.md has every code with its status, and no other', async () => {
  const [ours = '', oauth = ''] = (await page('errors.md')).split('## Under `/oauth/`')
  expect(rows(ours)).toEqual(Object.entries(PROBLEMS).map(([code, { status }]) => [code, String(status)]))
  expect(rows(oauth)).toEqual(Object.entries(OAUTH_ERRORS).map(([code, status]) => [code, String(status)]))
})

test('docs/reference/audit.md has every field and every action, and no other', async () => {
  const [fields = '', actions = ''] = (await page('audit.md')).split('## Actions')
  expect(rows(fields).map(([name]) => name)).toEqual(Object.keys(AuditEntry.properties))
  expect(rows(actions).map(([name]) => name)).toEqual([...ACTIONS])
})

test('docs/reference/openapi.json has every route with its security, and no other', async () => {
  const document = JSON.parse(await page('openapi.json'))
  expect(document.openapi).toBe('3.1.0')
  const described = Object.entries(
    document.paths as Record<string, Record<string, { security?: object[] }>>,
  ).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`),
  )
  const known = Object.keys(ROUTES)
  expect(described.filter((name) => !name.startsWith('HEAD ')).sort()).toEqual([...known].sort())
  for (const [name, rule] of Object.entries(ROUTES as Record<string, RouteRule>)) {
    const [method = '', path = ''] = name.split(' ')
    const operation = document.paths[path.replace(/:(\w+)/g, '{$1}')][method.toLowerCase()]
    expect(operation.summary, name).toMatch(/\S/)
    // Administrators and readers: a bearer, the session of an operator, or the local host.
    const ways = { public: 0, agent: 1, session: 1, admin: 3, reader: 3 }[rule.access]
    expect(operation.security.length, name).toBe(path.startsWith('/oauth/') ? 2 : ways)
    if (rule.access === 'admin') expect(operation.security[0].bearer, name).toEqual([rule.scope])
  }
})

test('docs/reference/openapi.json names its error bodies once and lists every code', async () => {
  const document = JSON.parse(await page('openapi.json'))
  const { code } = document.components.schemas.Error.properties.error.properties
  expect(code).toMatchObject({ type: 'string', enum: Object.keys(PROBLEMS) })
  const bodies = Object.entries(
    document.paths as Record<string, Record<string, { responses: Record<string, object> }>>,
  ).flatMap(([path, item]) =>
    Object.values(item).flatMap(({ responses }) => [
      [path, responses['4XX']],
      [path, responses['5XX']],
    ]),
  )
  for (const [path, response] of bodies) {
    const name = String(path).startsWith('/oauth/') ? 'OAuthError' : 'Error'
    expect(response, String(path)).toMatchObject({
      content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } },
    })
  }
})
