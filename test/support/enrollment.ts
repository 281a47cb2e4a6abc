import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { compilePolicies, type PolicyEntry } from '../../src/config/policies.ts'
import { adminPendingRoutes } from '../../src/http/routes/v1/admin-pending.ts'
import { adminPolicyRoutes } from '../../src/http/routes/v1/admin-policies.ts'
import { enrollRoutes } from '../../src/http/routes/v1/enroll.ts'
import { requestRoutes } from '../../src/http/routes/v1/request.ts'
import { statusRoutes } from '../../src/http/routes/v1/status.ts'
import { AS_LOCAL, type TestCore, testCore } from './core.ts'
import type { newEnrollee } from './enrollee.ts'

export const POLICIES: PolicyEntry[] = [
  {
    name: 'ci',
    pattern: 'ci-*',
    scopes: ['db:read', 'log:*'],
    auto_approve: true,
    max_agent_lifetime: '90m',
    max_ttl: '15m',
    max_agents: 5,
    rate: '10/hour',
    deny: ['log:secret'],
  },
  { name: 'rest', pattern: '*', scopes: ['x:y'] },
]

export let test: TestCore
async function open(): Promise<void> {
  const policies = compilePolicies(POLICIES, (fault) => {
    throw fault
  })
  test = await testCore({ policies })
  for (const routes of [enrollRoutes, requestRoutes, adminPendingRoutes, adminPolicyRoutes, statusRoutes])
    routes(test.http)
}

/** The enrollment routes over HTTP, with a fresh core for each test. */
export function useFreshCore(): void {
  beforeEach(open)
  afterEach(() => test.close())
}

/** The same with one core for the whole file, which is faster, for tests that do not disturb each other. */
export function useSharedCore(): void {
  beforeAll(open)
  afterAll(() => test.close())
}

export interface Sent {
  body?: object | string
  token?: string
  headers?: Record<string, string>
  from?: string
}
let addresses = 0
export async function call(method: 'GET' | 'POST', url: string, { body, token, headers, from }: Sent = {}) {
  addresses += 1
  const reply = await test.http.server.inject({
    method,
    url,
    remoteAddress: from ?? `10.1.${addresses >> 8}.${addresses & 255}`,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(typeof body === 'string' ? { 'content-type': 'application/json' } : {}),
      ...headers,
    },
    ...(body === undefined ? {} : { payload: body }),
  })
  return {
    status: reply.statusCode,
    headers: reply.headers,
    text: reply.body,
    json: reply.body === '' ? null : reply.json(),
  }
}
export const enroll = (me: ReturnType<typeof newEnrollee>, more: object = {}) =>
  call('POST', '/v1/enroll', {
    body: { name: 'bot', scopes: ['db:read'], public_key: me.publicKey, ...more },
  })
export const poll = (id: string, proof?: string) =>
  call(
    'GET',
    `/v1/enroll/${id}/status`,
    proof === undefined ? {} : { headers: { 'enrollment-proof': proof } },
  )
export const decide = (id: string, verb: 'approve' | 'reject', body?: object, token?: string) =>
  call('POST', `/v1/admin/pending/${id}/${verb}`, {
    ...(token === undefined ? { headers: AS_LOCAL } : { token }),
    ...(body === undefined ? {} : { body }),
  })
export const now = () => test.core.store.now()
export const code = (reply: { json: { error?: { code?: string } } }) => reply.json.error?.code
export const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
