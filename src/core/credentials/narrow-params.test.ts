import { Type } from 'typebox'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import type { Kind } from '../../backends/kind.ts'
import { isScope } from '../../domain/scope.ts'
import { createAgent } from '../agents/create-agent.ts'
import { createBackend } from '../backends/configure-backend.ts'
import { issueCredential } from './issue-credential.ts'
import { paramsOf } from './narrow-params.ts'

const params = Type.Object(
  {
    repos: Type.Optional(Type.Array(Type.String({ pattern: '^[a-z]+/[a-z]+$' }))),
    read_only: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)
const config = Type.Object({}, { additionalProperties: false })

/** A kind that narrows its credentials; each says what it was narrowed to. */
const narrowing: Kind<typeof config, typeof params> = {
  type: 'narrowing',
  title: 'Narrows',
  config,
  params,
  limits: {},
  revocation: 'expiry_only',
  upstream: false,
  scopes: { valid: isScope, forms: [], help: 'Any scope.' },
  open: async () => ({
    check: async () => [],
    issue: async (request) => ({ secret: JSON.stringify(request.params) }),
    async [Symbol.asyncDispose]() {},
  }),
}

let test: TestCore
beforeAll(async () => {
  test = await testCore({}, [narrowing])
})
afterAll(() => test.close())

it('passes `repo` and `read_only` to a kind that knows them, which checks them', async () => {
  const { core } = test
  await createBackend(core, LOCAL, { type: 'narrowing', name: 'hub', config: {} }, false)
  const { token } = await createAgent(core, LOCAL, { name: 'one', scopes: ['hub:*'] })
  const actor = await test.actor(token)
  const issue = async (narrow: Parameters<typeof paramsOf>[1]['narrow']) => {
    const { secret } = await issueCredential(core, actor, { backend: 'hub', narrow })
    return JSON.parse(secret ?? '')
  }
  expect(await issue({ repo: ['o/r', 'o/s'], read_only: true })).toEqual({
    repos: ['o/r', 'o/s'],
    read_only: true,
  })
  expect(await issue({ read_only: false })).toEqual({ read_only: false })
  expect(await issue(undefined)).toEqual({})
  await expect(issue({ repo: ['../x'] })).rejects.toMatchObject({ code: 'invalid_request' })
})

it.each([
  ['repo', { repo: ['o/r'] }],
  ['read_only', { read_only: false }],
])('refuses `%s` by name for a kind that does not know it', (name, narrow) => {
  const other = { type: 'other', params: Type.Object({ audience: Type.String() }) }
  expect(() => paramsOf(other, { narrow })).toThrow(`"${name}" cannot narrow a credential of kind other`)
})
