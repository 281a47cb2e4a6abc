import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { cpuMsOf } from '../support/cpu-time.ts'
import { LONG } from '../support/long.ts'
import { longestTurnMs } from '../support/longest-turn.ts'
import { multiplyCredential } from '../support/many-credentials.ts'
import { DIALECTS } from '../support/store.ts'

/** Revoked serials of each backend. */
const COUNT = LONG ? 300_000 : 150_000
/** What may pass before `/health` is answered. */
const HOLD_MS = 500
/** How many times the CPU time of one list ten may take: 1.5 where they share their making, 10 where each is made anew. */
const LISTS = 5

describe.each(LONG ? DIALECTS : (['sqlite'] as const))('%s', (dialect) => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ dialect })
    const config = { ssh: { principals: ['deploy'] }, x509: { names: ['db.internal'] } }
    for (const type of ['ssh', 'x509'] as const) {
      await app.newBackend({ type, name: type, config: config[type] })
    }
    const agent = await app.newAgent({ scopes: ['ssh', 'x509'] })
    for (const backend of ['ssh', 'x509']) {
      const { body } = await agent.client.post('/api/v1/credentials', { backend })
      await agent.client.delete(`/api/v1/credentials/${body.id}`)
      await multiplyCredential(app.core, body.id, COUNT - 1)
    }
  })
  afterAll(() => app.close())

  const fetchList = async (backend: string) => {
    const reply = await fetch(`${app.url}/backends/${backend}/revoked`)
    return { status: reply.status, size: (await reply.arrayBuffer()).byteLength }
  }

  it.each(['ssh', 'x509'])(
    'holds nobody up for long with very many revoked serials, however many ask for the list of %s',
    async (backend) => {
      let oneMs = 0
      for (let n = 0; n < 2; n += 1) {
        oneMs = Math.max(oneMs, await cpuMsOf(() => fetchList(backend)))
        // Past the time for which a list is kept.
        app.advance(30_000)
      }
      const replies: Promise<{ status: number; size: number }>[] = []
      let most = 0
      const cpuMs = await cpuMsOf(async () => {
        most = await longestTurnMs(async () => {
          for (let n = 0; n < 10; n += 1) {
            app.advance(30_000)
            replies.push(fetchList(backend))
            await fetch(`${app.url}/health`)
          }
          await Promise.all(replies)
        })
      })
      const sizes = (await Promise.all(replies)).map(({ status, size }) => [status, size > COUNT * 8])
      expect(sizes).toEqual(replies.map(() => [200, true]))
      expect(most).toBeLessThan(HOLD_MS)
      expect(cpuMs).toBeLessThan(LISTS * oneMs)
    },
  )
})
