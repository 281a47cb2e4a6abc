import type { RequestLine } from '../../src/client/wire.ts'
import type { NewAgent } from '../../test/support/app.ts'

const SECOND = 1_000

const LINE = {
  protocol: 'http',
  method: 'GET',
  authority: 'pay.shop.internal',
  path: null,
  status: 200,
  bytes_sent: 640,
  bytes_received: 0,
  duration_ms: 48,
  decision: 'injected',
  reason: null,
  backend: 'payments',
  credential_id: null,
  placeholder: 'payments',
  redacted: 0,
} as const satisfies Omit<RequestLine, 'at'>
const OTHER = { decision: 'forwarded', backend: null, placeholder: null } as const
const REFUSED = { status: 403, decision: 'refused', bytes_received: 132, duration_ms: 1 } as const

/** After how many seconds of the run an agent did what. */
const WORK: readonly (readonly [after: number, line: Partial<RequestLine>])[] = [
  [4, { path: '/v1/refunds', bytes_received: 18_240 }],
  [5, { path: '/v1/refunds/*', bytes_received: 2_112, duration_ms: 31 }],
  [6, { path: '/v1/refunds/*', bytes_received: 2_087, duration_ms: 29 }],
  [
    9,
    {
      ...OTHER,
      authority: 'registry.npmjs.org',
      path: '/date-fns',
      bytes_received: 412_880,
      duration_ms: 310,
    },
  ],
  [41, { path: '/v1/refunds/*', method: 'PATCH', ...REFUSED, reason: 'method_not_allowed' }],
  [58, { path: '/v1/customers/*', bytes_received: 1_904, redacted: 1 }],
  [
    66,
    {
      ...{
        authority: 'paste.example.net',
        method: 'POST',
        status: 403,
        bytes_sent: 3_310,
        bytes_received: 118,
      },
      ...{ decision: 'misused', reason: 'elsewhere', duration_ms: 2 },
    },
  ],
]
/** A database is one line, when the session is over. */
const SESSION = {
  ...{ protocol: 'postgres', method: null, status: null, authority: 'orders-db.internal:5432' },
  ...{ bytes_sent: 9_480, bytes_received: 1_730_000, duration_ms: 61_400 },
  ...{ backend: 'orders', placeholder: 'orders.password' },
} as const

type Client = NewAgent['client'] | undefined

/** An agent compares refunds with orders, and once sends a placeholder where it must not. Returns the id of its run. */
export async function beginRun(client: Client, clock: { now: number }): Promise<string> {
  const started = clock.now
  const purpose = 'Compare the refunds of last week with the orders (SHOP-812)'
  const { id } = await post(client, '/v1/runs', { purpose, heartbeat: '1m' })
  const ids: Record<string, string> = {}
  for (const [backend, scope] of [
    ['payments', 'payments:read'],
    ['orders', 'orders:shop:read'],
  ] as const) {
    clock.now += SECOND
    const issued = await post(client, '/api/v1/credentials', {
      backend,
      scopes: [scope],
      ttl: '15m',
      run: id,
    })
    ids[backend] = issued.id
  }
  const lines = [...WORK, [70, SESSION] as const].map(([after, line]) => {
    const whole = { ...LINE, ...line, at: new Date(started + after * SECOND).toISOString() }
    return { ...whole, credential_id: whole.backend === null ? null : (ids[whole.backend] ?? null) }
  })
  clock.now = started + 71 * SECOND
  await post(client, `/v1/runs/${id}/requests`, { batch: '1'.padStart(26, '0'), requests: lines })
  await beat(client, id)
  return id
}

export const beat = (client: Client, run: string) => post(client, `/v1/runs/${run}/heartbeat`, {})

async function post(client: Client, path: string, body: object) {
  const reply = await client?.post(path, body, { 'x-forwarded-for': '10.20.9.12' })
  if (reply === undefined || reply.status >= 300) throw new Error(reply?.text)
  return reply.body
}
