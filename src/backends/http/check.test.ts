import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { RECIPES } from './builtin.ts'
import { findRecipeFaults } from './check.ts'
import { kindOf } from './kind.ts'
import type { Recipe } from './schema.ts'

test.each((RECIPES as Recipe[]).map((recipe) => [recipe.type, recipe]))('%s has no faults', (_, recipe) => {
  expect(findRecipeFaults(recipe)).toEqual([])
})

test.each((RECIPES as Recipe[]).map((recipe) => [recipe.type, recipe]))(
  '%s says where and why',
  (_, recipe) => {
    expect(recipe.source.every((page) => URL.canParse(page))).toBe(true)
    expect(recipe.issue.requests.every(({ needs }) => needs !== undefined)).toBe(true)
  },
)

test('the published schema describes them, to another validator, too', () => {
  const file = new URL('../../../docs/reference/recipe.schema.json', import.meta.url)
  const validate = new Ajv2020({ strict: false }).compile(JSON.parse(readFileSync(file, 'utf8')))
  for (const recipe of RECIPES) expect(validate(recipe), JSON.stringify(validate.errors)).toBe(true)
  expect(validate({ ...(RECIPES[0] as object), colour: 'red' })).toBe(false)
})

const SOUND = {
  type: 'acme',
  title: 'Acme',
  source: ['https://acme.example/docs'],
  base_url: { default: 'https://api.acme.example' },
  fields: {
    token: { secret: true, description: 'Token.', example: 'x' },
    teams: { type: 'list', form: '<team>', upstream: true, description: 'Teams.', example: ['a'] },
  },
  auth: { bearer: '{token}' },
  scopes: { help: 'A team.', forms: [{ form: '<team>:read', gives: 'read' }], places: 'teams' },
  issue: {
    requests: [{ request: 'POST /teams/{team}/keys', json: { label: '{name}', ttl: '{ttl_seconds}' } }],
    secret: '/key',
    handle: { id: '/id', team: '{team}' },
  },
  revoke: { request: 'DELETE /teams/{team}/keys/{id}' },
  list: { request: 'GET /teams/{team}/keys', name: '/label', handle: { id: '/id', team: '{team}' } },
  privileges: 'A token.',
}

/** The sound recipe with one part replaced; `undefined` removes it. */
function withPart(path: string, value: unknown): unknown {
  const recipe = structuredClone(SOUND) as unknown as Record<string, unknown>
  const steps = path.split('.')
  const last = steps.pop() ?? ''
  const parent = steps.reduce<Record<string, unknown>>(
    (at, step) => at[step] as Record<string, unknown>,
    recipe,
  )
  if (value === undefined) delete parent[last]
  else parent[last] = value
  return recipe
}

describe('a faulty recipe', () => {
  test('the sound one has no faults', () => {
    expect(findRecipeFaults(SOUND)).toEqual([])
  })

  test.each([
    ['title', undefined, '', 'title'],
    ['colour', 'red', 'colour', 'is not known here'],
    ['issue.secret', 'key', 'issue.secret', 'JSON Pointer'],
    ['issue.secret', '/a~2b', 'issue.secret', 'JSON Pointer'],
    ['issue.fields', { a: '/a' }, 'issue', 'needs either "secret" or "fields"'],
    ['issue.handle', { id: '/id' }, 'list', 'same names in "handle"'],
    ['issue.handle.name', '/name', 'issue.handle.name', 'Mayfly uses itself'],
    [
      'issue.requests.0.json',
      { label: '{nam}' },
      'issue.requests.0.json.label',
      'there is no variable {nam} here',
    ],
    ['issue.requests.0.json', { label: '{name' }, 'issue.requests.0.json.label', 'belongs to no variable'],
    [
      'issue.requests.0.json',
      { '{token}': 1 },
      'issue.requests.0.json.{token}',
      'is secret: only "auth" may use it',
    ],
    ['issue.requests.0.request', 'POST /teams/{token}', 'issue.requests.0.request', 'is secret'],
    [
      'issue.requests.0.request',
      'POST https://evil.example/',
      'issue.requests.0.request',
      'a method and a path',
    ],
    ['issue.requests.0.request', 'POST /a?b={name}', 'issue.requests.0.request', 'a method and a path'],
    ['issue.facts', { token: '{token}' }, 'issue.facts.token', 'is secret'],
    [
      'revoke.request',
      'DELETE /keys/{credential_id}',
      'revoke.request',
      'there is no variable {credential_id} here',
    ],
    ['auth', {}, 'auth', 'exactly one way to log in'],
    ['auth', { bearer: '{tok}' }, 'auth.bearer', 'there is no variable {tok} here'],
    ['fields.teams.upstream', false, 'fields.teams', 'needs "upstream: true"'],
    ['scopes.places', 'token', 'scopes.places', 'must be a required field of the type list'],
    ['scopes.forms', [{ form: 'a b', gives: 'x' }], 'scopes.forms', 'is not a scope'],
    [
      'scopes.forms.1',
      { form: '*', gives: 'x' },
      'scopes.forms.1.form',
      'must give the variables of the first form: team',
    ],
    ['scopes.parts', { team: { pattern: '(' } }, 'scopes.parts.team.pattern', 'is not a regular expression'],
    ['scopes.parts', { team: { pattern: '[ab]*[ab]{200}' } }, 'scopes.parts.team.pattern', 'is too complex'],
    ['naming', { pattern: '(a+)+' }, 'naming.pattern', 'is too complex'],
    ['scopes.most', 3, 'issue.requests.0.request', '{team} is a list here'],
    ['naming', { max_length: 20 }, 'naming.max_length', 'must be at least 29'],
    ['naming', { pattern: '[a-z]+' }, 'naming.pattern', 'does not match names such as mf_'],
    ['limits', { min_ttl: 'soon', why: 'x' }, 'limits.min_ttl', 'is not a duration'],
    ['fields.Token', { description: 'x', optional: true }, 'fields.Token', 'is not a name'],
    ['fields.local', { description: 'x', optional: true }, 'fields.local', 'Mayfly uses itself'],
    ['fields.region', { description: 'x' }, 'fields.region', 'needs an "example"'],
    ['base_url', {}, 'base_url', 'needs either'],
    ['environment', { ACME_KEY: '{key}' }, 'environment.ACME_KEY', 'there is no variable {key} here'],
    ['list', undefined, '', 'needs "list" or "check"'],
  ])('%s: %j', (path, value, at, message) => {
    const faults = findRecipeFaults(withPart(path, value)).map((fault) => [
      fault.path.join('.'),
      fault.message,
    ])
    expect(faults).toContainEqual([at, expect.stringContaining(message)])
  })
})

const USE = {
  name: 'api',
  places: [{ header: 'Authorization' }],
  allow: [{ methods: ['GET'], paths: ['/teams/{team}/**'] }],
}
const withUse = (use: object, recipe: object = SOUND) => ({ ...recipe, uses: [{ ...USE, ...use }] })
const { secret: _, ...issueWithoutSecret } = SOUND.issue
const OF_FIELDS = { ...SOUND, issue: { ...issueWithoutSecret, fields: { key: '/key', id: '/id' } } }

describe('where a credential is used', () => {
  test('may be said', () => {
    expect(findRecipeFaults(withUse({}))).toEqual([])
    expect(findRecipeFaults(withUse({ origin: 'https://other.acme.example' }))).toEqual([])
  })

  test.each<[string, object, string]>([
    ['a place without a kind', { places: [{}] }, 'needs exactly one of "header", "basic" and "query"'],
    ['a place with two', { places: [{ header: 'X-Key', basic: true }] }, 'needs exactly one of'],
    [
      'a field that is not there',
      { places: [{ header: 'X-Key', field: 'key' }] },
      'is for credentials with "fields"',
    ],
    ['an origin in clear', { origin: 'http://acme.example' }, 'must be the address of an upstream'],
    ['an origin with a query', { origin: 'https://acme.example/?a' }, 'must be the address of an upstream'],
    ['an origin with a login', { origin: 'https://a@acme.example' }, 'must be the address of an upstream'],
    ['an origin with a secret', { origin: 'https://{token}.example' }, 'there is no variable {token} here'],
    [
      'a path with a secret',
      { allow: [{ methods: ['GET'], paths: ['/{token}'] }] },
      'there is no variable {token} here',
    ],
    [
      'a path with a list',
      { allow: [{ methods: ['GET'], paths: ['/{teams}'] }] },
      'there is no variable {teams} here',
    ],
    [
      'a path with another name',
      { allow: [{ methods: ['GET'], paths: ['/{name}'] }] },
      'there is no variable {name} here',
    ],
    [
      '** in the middle',
      { allow: [{ methods: ['GET'], paths: ['/a/**/b'] }] },
      'may have ** only as its last segment',
    ],
    ['a path with dots', { allow: [{ methods: ['GET'], paths: ['/a/../b'] }] }, 'must not have dot segments'],
    ['an escape', { allow: [{ methods: ['GET'], paths: ['/a%2fb'] }] }, 'must not be escaped'],
    ['a query', { allow: [{ methods: ['GET'], paths: ['/a?b'] }] }, 'must not have'],
    [
      'a method that no rule may have',
      { allow: [{ methods: ['CONNECT'], paths: ['/a'] }] },
      'must be methods',
    ],
    ['* beside a method', { allow: [{ methods: ['*', 'GET'], paths: ['/a'] }] }, 'may have * only alone'],
    [
      'a part that no scope has',
      { allow: [{ methods: ['GET'], paths: ['/a'], for: { role: ['x'] } }] },
      'is not a part of the forms',
    ],
    [
      'a denial that depends on scopes',
      { deny: [{ methods: ['*'], paths: ['/{team}/keys'] }] },
      'deny a path whatever the scopes are',
    ],
  ])('is refused with %s', (_, use, message) => {
    expect(
      findRecipeFaults(withUse(use))
        .map((fault) => fault.message)
        .join(),
    ).toContain(message)
  })

  test('names a field where a credential has several', () => {
    const of = (place: object) =>
      findRecipeFaults(withUse({ places: [place] }, OF_FIELDS)).map((one) => one.message)
    expect(of({ header: 'X-Key', field: 'key' })).toEqual([])
    expect(of({ header: 'X-Key' })).toEqual(['must be one of key, id'])
    expect(of({ header: 'X-Key', field: 'other' })).toEqual(['must be one of key, id'])
  })

  test('is sound as the guide shows it', () => {
    const guide = readFileSync(new URL('../../../docs/guides/write-a-recipe.md', import.meta.url), 'utf8')
    const blocks = [...guide.matchAll(/^```yaml\n([^`]*)^```$/gm)].map(([, yaml = '']) => parse(yaml))
    const whole = Object.assign({}, ...blocks.filter((block) => 'uses' in block || 'fields' in block))
    expect(whole).toMatchObject({ type: 'acme', uses: [{ name: 'api' }] })
    expect(findRecipeFaults(whole)).toEqual([])
    const uses = kindOf(whole).uses?.({ base_url: 'https://api.acme.example' } as never, ['billing:read'])
    expect(uses).toMatchObject([
      { allow: [{ methods: ['GET', 'HEAD'], path: '/v1/teams/billing/orders/**' }] },
    ])
  })

  test('has one name for each use', () => {
    expect(findRecipeFaults({ ...SOUND, uses: [USE, USE] }).map((fault) => fault.message)).toEqual([
      'is the name of another use',
    ])
  })
})
