import { afterEach, describe, expect, test, vi } from 'vitest'
import { unlessAborted } from '../domain/abort.ts'
import { createClient, type Transport, type TransportReply } from './client.ts'

describe('an answer that takes longer than 30 seconds', () => {
  afterEach(() => vi.useRealTimers())

  /** The server's answer to a slow call, when it answers `/health` or does not. */
  async function slow(health: () => Promise<TransportReply>): Promise<unknown> {
    vi.useFakeTimers()
    const { promise: answer, resolve } = Promise.withResolvers<TransportReply>()
    const ok = { status: 200, header: () => undefined, text: '{"id":"cred_1"}' }
    const asked: string[] = []
    const transport: Transport = async ({ url, signal, timeoutMs }) => {
      if (url.endsWith('/health')) {
        asked.push(url)
        return health()
      }
      expect(timeoutMs).toBeGreaterThan(2 * 300_000)
      return unlessAborted(answer, signal)
    }
    const options = { server: 'http://127.0.0.1:1', auth: { kind: 'none' }, retries: 0, transport } as const
    const ended = createClient(options)
      .call({ method: 'GET', path: '/v1/status' })
      .then(
        () => 'answered',
        (error: unknown) => error,
      )
    await vi.advanceTimersByTimeAsync(100_000)
    expect(asked.length).toBeGreaterThan(0)
    resolve(ok)
    return ended
  }

  test('a server that answers others is waited for', async () => {
    const ok = { status: 200, header: () => undefined, text: '{}' }
    expect(await slow(async () => ok)).toBe('answered')
  })

  test('a server that answers nobody is given up', async () => {
    const silent = async () => Promise.reject(new Error('silent'))
    expect(await slow(silent)).toMatchObject({ reason: 'timeout', mayHaveArrived: true })
  })
})
