import { readdirSync, readFileSync } from 'node:fs'
import { Value } from 'typebox/value'
import { describe, expect, test } from 'vitest'
import { kinds } from '../../src/backends/index.ts'
import type { Kind } from '../../src/backends/kind.ts'
import { USE_CASES, type UseCase } from '../support/uses/cases.ts'
import { permits } from '../support/uses/permits.ts'
import { RECIPE_CASES } from '../support/uses/recipe-cases.ts'
import vendors from '../support/uses/vendor-operations.json' with { type: 'json' }

/**
 * What a proxy lets through with a credential of each kind, by default: what programs do, and nothing that makes a credential.
 * `MAYFLY_VENDOR_DESCRIPTIONS` may name a directory with whole descriptions: `<kind>.json`, a list of `{method, path}`.
 */
const CASES: Readonly<Record<string, UseCase>> = { ...USE_CASES, ...RECIPE_CASES }
const OTHERS = process.env['MAYFLY_VENDOR_DESCRIPTIONS']

/** Kinds whose credentials are no logins over HTTP, or where only an administrator knows. */
const NONE = 'jwt ldap mqtt nats oauth2 oauth2-revocable rabbitmq ssh vault-secret x509 dockerhub tailscale'
const DATABASES = 'mysql postgres redis'

const kindOf = (type: string) => kinds.find((kind) => kind.type === type) as Kind

function usesOf(type: string, { config = {}, scopes }: UseCase) {
  const kind = kindOf(type)
  const [example] = (kind.config as { examples?: readonly object[] }).examples ?? []
  const whole = Value.Default(kind.config, { ...structuredClone(example), ...structuredClone(config) })
  return kind.uses?.(whole as never, scopes) ?? []
}

function urlOf(operation: string, { origin, params = {} }: UseCase): [method: string, url: string] {
  const [method = '', place = ''] = operation.split(' ')
  const path = place.replace(/\{([^}]+)\}/g, (_, name: string) => params[name] ?? 'x')
  return [method, path.startsWith('/') ? `${origin}${path}` : path]
}

test('each kind says where its credentials are used, or is known to have no such place', () => {
  const said = kinds.filter(({ uses }) => uses !== undefined).map(({ type }) => type)
  expect(said.sort()).toEqual([...Object.keys(CASES), ...DATABASES.split(' ')].sort())
  const silent = kinds.filter(({ uses }) => uses === undefined).map(({ type }) => type)
  expect(silent.sort()).toEqual(NONE.split(' ').sort())
})

describe.each(Object.entries(CASES))('with a credential of %s', (type, one) => {
  const uses = usesOf(type, one)

  test.each(one.ordinary)('a program may %s', (operation) => {
    expect(permits(uses, ...urlOf(operation, one))).toBe(true)
  })

  test.each(one.makes)('nobody may %s', (operation) => {
    expect(permits(uses, ...urlOf(operation, one))).toBe(false)
  })
})

/** An operation that makes a token, key, secret or credential: it changes something, and its path says so, or it is read so. */
const MAKES =
  /(^|[/_.-])(access_?|api_?|auth|authentication-|registration-|remove-|deploy_?|service_?|secret_?)?(tokens?|secrets?|creds|credentials?|keys?|passwords?|logins?|sessions?|service_?accounts|api_key|oauth2?|jitconfig|certificatesigningrequests)(?=$|[/_.:-])/i
const CHANGES = /^(POST|PUT|PATCH) /
const READ = /\/(creds|static-creds|sts|export)\/|^GET \S*registration-token/

const makes = (operation: string, { harmless }: UseCase) =>
  (READ.test(operation) || (CHANGES.test(operation) && MAKES.test(operation.split(' ')[1] ?? ''))) &&
  harmless?.test(operation) !== true

describe('of the descriptions of the vendors, the operations that make credentials are refused:', () => {
  const known = Object.entries(vendors as Record<string, string[]>).flatMap(([name, operations]) => {
    const type = name === 'forgejo' ? 'gitea' : name
    const one = CASES[type]
    return one === undefined || operations.length === 0 ? [] : [[name, type, one, operations] as const]
  })
  test.each(known)('%s', (_, type, one, operations) => {
    const uses = usesOf(type, one)
    const making = operations.filter((operation) => makes(operation, one))
    expect(making).not.toEqual([])
    expect(making.filter((operation) => permits(uses, ...urlOf(operation, one)))).toEqual([])
  })
})

describe.runIf(OTHERS !== undefined)('of whole descriptions:', () => {
  const names = OTHERS === undefined ? [] : readdirSync(OTHERS).filter((name) => name.endsWith('.json'))
  const known = names.map((name) => name.replace('.json', '')).filter((name) => name in CASES)
  test.each(known)('%s', (type) => {
    const one = CASES[type] as UseCase
    const uses = usesOf(type, one)
    const read = JSON.parse(readFileSync(`${OTHERS}/${type}.json`, 'utf8')) as {
      method: string
      path: string
    }[]
    const all = read.map(({ method, path }) => `${method} ${path}`)
    const making = all.filter((operation) => makes(operation, one))
    const passed = all.filter((operation) => permits(uses, ...urlOf(operation, one)))
    console.log(
      `${type}: ${all.length} operations, ${passed.length} permitted, ${making.length} make credentials`,
    )
    expect(making.filter((operation) => passed.includes(operation))).toEqual([])
  })
})
