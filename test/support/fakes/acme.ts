import { expect } from 'vitest'
import { readConfig } from '../../../src/backends/config-fields.ts'
import { findRecipeFaults } from '../../../src/backends/http/check.ts'
import { kindOf } from '../../../src/backends/http/kind.ts'
import type { Recipe } from '../../../src/backends/http/schema.ts'
import type { Backend } from '../../../src/backends/kind.ts'
import { createTestHost } from '../host.ts'
import { type FakeApi, type FakeRequest, type FakeRoute, startFakeApi } from './fake-api.ts'

/** What the fake answers as a secret. */
export const SECRET = 'the-secret-of-a-credential-0123456789'

/** A sound recipe, in which tests replace parts. */
export const RECIPE = {
  type: 'acme',
  title: 'Acme',
  source: ['https://acme.example/docs'],
  base_url: { example: 'https://acme.example' },
  fields: {
    token: { secret: true, description: 'Token.', example: 'x', optional: true },
    teams: { type: 'list', form: '<team>', upstream: true, description: 'Teams.', example: ['a', 'b'] },
  },
  auth: { bearer: '{token}' },
  headers: { 'x-team': 'mayfly' },
  scopes: { help: 'Teams.', forms: [{ form: '<team>', gives: 'x' }], places: 'teams' },
  issue: {
    requests: [
      {
        request: 'POST /teams/{team}/keys',
        headers: { 'x-agent': '{agent_id}' },
        json: { label: '{name}', by: 'for {agent_name}', scopes: { $each: { team: '{team}' } } },
        needs: 'the role keeper',
      },
    ],
    secret: '/key',
    handle: { id: '/id', team: '{team}' },
  },
  revoke: { request: 'DELETE /teams/{team}/keys/{id}' },
  list: {
    request: 'GET /teams/{team}/keys',
    items: '/keys',
    name: '/label',
    handle: { id: '/id', team: '{team}' },
  },
  privileges: 'A token.',
}

export interface Acme {
  readonly backend: Backend
  readonly api: FakeApi
  /** The requests that a route answered. */
  readonly seen: FakeRequest[]
}

/** Opens the recipe with `changes` at a fake that answers with `routes`. */
export async function openAcme(
  changes: Readonly<Record<string, unknown>>,
  routes: Record<string, FakeRoute>,
  config: object = {},
): Promise<Acme> {
  const recipe = { ...RECIPE, ...changes } as Recipe
  expect(findRecipeFaults(recipe)).toEqual([])
  const seen: FakeRequest[] = []
  const noted = Object.entries(routes).map(([route, answer]): [string, FakeRoute] => [
    route,
    (request) => {
      seen.push(request)
      return answer(request)
    },
  ])
  const api = await startFakeApi(Object.fromEntries(noted), [404, {}])
  const kind = kindOf(recipe)
  const given = { base_url: `${api.url}/`, local: true, token: 't0ken', teams: ['a', 'b'], ...config }
  const read = readConfig(kind.config, given)
  expect(read.faults).toEqual([])
  const backend = await kind.open(read.config, createTestHost('acme').host)
  return { backend, api, seen }
}

export const made: FakeRoute = () => [201, { id: 7, key: SECRET }]
export const nothing: FakeRoute = () => [200, { keys: [] }]
