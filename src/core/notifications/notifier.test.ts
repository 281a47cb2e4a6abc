import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../test/support/app.ts'
import { ANYBODY, LOCAL, ORIGIN, type TestCore, testCore } from '../../../test/support/core.ts'
import { newEnrollee } from '../../../test/support/enrollee.ts'
import { platform } from '../../../test/support/identity-tokens.ts'
import type { Action } from '../../domain/actions.ts'
import { HOUR_MS, MINUTE_MS } from '../../domain/limits.ts'
import { type Notice, NotTaken, type Receiver } from '../../domain/notice.ts'
import type { RunRequest } from '../../domain/run-request.ts'
import { createAgent } from '../agents/create-agent.ts'
import { audit } from '../audit/entry.ts'
import { type Actor, type AgentCaller, SYSTEM } from '../caller.ts'
import { commit } from '../commit.ts'
import { enroll } from '../enrollments/enroll.ts'
import { rejectEnrollment } from '../enrollments/reject-enrollment.ts'
import { requestScopes } from '../enrollments/request-scopes.ts'
import { agentOfPlatform } from '../identities/platform-agent.ts'
import { recordRequests } from '../runs/record-requests.ts'
import { startRun } from '../runs/start-run.ts'
import { createNotifier } from './notifier.ts'

const REQUEST: RunRequest = {
  ...{ at: 0, protocol: 'http', method: 'POST', authority: '', path: null, status: 403 },
  ...{ bytesSent: 0, bytesReceived: 0, durationMs: 1, decision: 'misused', reason: 'elsewhere' },
  ...{ backend: null, credentialId: null, placeholder: 'gateway', redacted: 0 },
}

let test: TestCore
beforeEach(async () => {
  test = await testCore({ enrollmentsPerMinute: 1_000 })
  test.freeze()
})
afterEach(() => test.close())

interface TestReceiver extends Receiver {
  readonly took: Notice[]
  tries: number
  isDown: boolean
  /** Hangs until it is given up. */
  isSilent: boolean
}

function receiver(name: string): TestReceiver {
  const self: TestReceiver = {
    name,
    took: [],
    tries: 0,
    isDown: false,
    isSilent: false,
    async send(notice, signal) {
      self.tries += 1
      if (self.isSilent) await new Promise((_, reject) => signal.addEventListener('abort', reject))
      if (self.isDown) throw new NotTaken('refused', 'status 503')
      self.took.push(notice)
    },
  }
  return self
}

function notifierFor(...receivers: readonly Receiver[]) {
  const notifier = createNotifier(test.core)
  notifier.setReceivers(receivers)
  return notifier
}

const record = (action: Action, details: Record<string, unknown> = {}, backend = 'db') =>
  test.core.store.commit([audit(test.core, SYSTEM, { action, backend, details })])
const down = (backend: string) => record('backend.down', { reason: 'unreachable' }, backend)
const titles = ({ took }: TestReceiver) => took.map(({ title }) => title)
/** Ids are made by the store's own clock, so that entries need a moment to be new to a receiver. */
async function started(notifier: ReturnType<typeof createNotifier>, ...all: TestReceiver[]) {
  notifier.tellDue()
  await eventually(async () => {
    for (const { name } of all) expect(await test.core.store.receivers.find(name)).toBeDefined()
  })
  test.advance(5_000)
}
async function told(notifier: ReturnType<typeof createNotifier>, ops: TestReceiver, count: number) {
  await eventually(async () => {
    notifier.tellDue()
    expect(ops.took).toHaveLength(count)
  })
}

describe('what is told', () => {
  it('tells a new receiver of what came before its first round: a server listens before it', async () => {
    await down('before')
    test.advance(10)
    const ops = receiver('ops')
    const notifier = notifierFor(ops)
    test.advance(10)
    await down('after')
    test.advance(5_000)
    await told(notifier, ops, 1)
    expect(titles(ops).join()).toContain('after')
  })

  it('tells of a request that waits, and of none that was decided or never waited', async () => {
    const ops = receiver('ops')
    const notifier = notifierFor(ops)
    await started(notifier, ops)
    const asked = await enroll(test.core, ANYBODY, {
      name: 'deploy-bot',
      scopes: ['db:read'],
      public_key: newEnrollee().publicKey,
    })
    const rejected = await enroll(test.core, ANYBODY, { name: 'other', public_key: newEnrollee().publicKey })
    await rejectEnrollment(test.core, LOCAL, rejected.id, {})
    const made = await createAgent(test.core, LOCAL, { name: 'ci', scopes: [] })
    const agent = await test.actor(made.token)
    const reason = `rotate\r\nBcc: all@example.com \u202e${made.token}`
    await requestScopes(test.core, agent, { scopes: ['db:write'], reason })
    await told(notifier, ops, 1)
    const [notice] = ops.took
    expect(notice).toMatchObject({
      type: 'request.waiting',
      title: '2 requests wait for a decision',
      data: {
        count: 2,
        requests: [
          { id: asked.id, type: 'enroll', agent: 'deploy-bot', scopes: ['db:read'] },
          { type: 'amendment', agent: 'ci', reason: 'rotate Bcc: all@example.com \ufffdckr_[redacted]' },
        ],
      },
    })
    expect(notice?.lines.join('\n')).toContain(`mayfly pending ${asked.id}`)
    expect(JSON.stringify(notice)).not.toContain(made.token)
    await notifier.stop()
  })

  it('tells of an agent that came in from a platform without rights, in plain text', async () => {
    const ops = receiver('ops')
    const notifier = notifierFor(ops)
    await started(notifier, ops)
    const of = platform('acme')
    const proven = { issuer: of.issuer, subject: 'agent 7\r\nBcc: all@example.com \u202e', claims: {} }
    const { agent, steps } = await agentOfPlatform(test.core, ANYBODY, of, proven)
    await commit(test.core, ANYBODY, steps)
    await told(notifier, ops, 1)
    expect(ops.took[0]).toMatchObject({
      type: 'request.waiting',
      title: `${agent.name} came in from the platform acme without rights`,
      lines: [expect.stringContaining('(subject: agent 7 Bcc: all@example.com \ufffd). mayfly pending enr_')],
      data: { requests: [{ type: 'claim', agent: agent.name, scopes: [] }] },
    })
    await notifier.stop()
  })

  it('tells of ends that are stuck in one message for each backend, and of no first failure', async () => {
    const ops = receiver('ops')
    const notifier = notifierFor(ops)
    await started(notifier, ops)
    const failed = (stuck: boolean, backend: string) =>
      record('credential.revoke_failed', { attempts: 6, stuck, code: 'backend_unavailable' }, backend)
    await failed(false, 'db')
    for (let n = 0; n < 3; n += 1) await failed(true, 'db')
    await failed(true, 'cache')
    await told(notifier, ops, 2)
    expect(titles(ops)).toEqual([
      '3 credentials of db cannot be ended',
      'A credential of cache cannot be ended',
    ])
    await notifier.stop()
  })

  it('tells of misused placeholders, in plain text', async () => {
    const ops = receiver('ops')
    const notifier = notifierFor(ops)
    await started(notifier, ops)
    const made = await createAgent(test.core, LOCAL, { name: 'coder', scopes: [] })
    const agent = await test.actor(made.token)
    const run = await startRun(test.core, agent as Actor<AgentCaller>, {})
    const misused = (authority: string) => ({ ...REQUEST, at: test.core.store.now(), authority })
    await recordRequests(test.core, agent as Actor<AgentCaller>, run.id, {
      batch: 'batch-1',
      requests: [
        misused('evil.example'),
        { ...misused('api.test'), decision: 'refused' },
        misused('b\u202e.test'),
      ],
    })
    await told(notifier, ops, 1)
    expect(ops.took[0]).toMatchObject({
      type: 'placeholder.misused',
      title: 'A placeholder of a backend was sent where it does not belong',
      lines: [
        expect.stringMatching(
          /^By coder, to evil\.example, b\ufffd\.test\. .*mayfly audit --action placeholder/,
        ),
      ],
      data: { count: 2, agents: ['coder'], authorities: ['evil.example', 'b\ufffd.test'], runs: [run.id] },
    })
    await notifier.stop()
  })

  it('tells each receiver of everything, with the same id', async () => {
    const all = [receiver('a'), receiver('b')] as const
    const notifier = notifierFor(...all)
    await started(notifier, ...all)
    await down('db')
    for (const one of all) await told(notifier, one, 1)
    expect(all[0].took).toEqual(all[1].took)
    expect(all[0].took[0]?.id).toMatch(/^msg_[0-9a-z]{26}$/)
    await notifier.stop()
  })
})

describe('at least once', () => {
  it('tells nothing again after a restart, once the position has passed it', async () => {
    const ops = receiver('ops')
    const first = notifierFor(ops)
    await started(first, ops)
    await down('db')
    await told(first, ops, 1)
    test.advance(MINUTE_MS)
    const row = await test.core.store.receivers.find('ops')
    await eventually(async () => {
      first.tellDue()
      expect((await test.core.store.receivers.find('ops'))?.position).not.toBe(row?.position)
    })
    await first.stop()
    const second = notifierFor(ops)
    await record('backend.up')
    await told(second, ops, 2)
    expect(titles(ops)).toEqual(['db is down', 'db works again'])
    await second.stop()
  })

  it('goes on after a restart with what was not taken, at once', async () => {
    const ops = receiver('ops')
    const first = notifierFor(ops)
    await started(first, ops)
    ops.isDown = true
    await down('db')
    await eventually(async () => {
      first.tellDue()
      expect(ops.tries).toBe(1)
    })
    await first.stop()
    ops.isDown = false
    const second = notifierFor(ops)
    await told(second, ops, 1)
    await second.stop()
  })

  it('keeps what it has told and where it is when the receivers are set again', async () => {
    const ops = receiver('ops')
    const notifier = notifierFor(ops)
    await started(notifier, ops)
    await down('db')
    await told(notifier, ops, 1)
    test.advance(5_000)
    const [again, other] = [receiver('ops'), receiver('other')]
    notifier.setReceivers([again, other])
    await started(notifier, again, other)
    await record('backend.up')
    await told(notifier, again, 1)
    await told(notifier, other, 1)
    expect([titles(ops), titles(again)]).toEqual([['db is down'], ['db works again']])
    expect(await notifier.test('gone', ops.took[0] as Notice)).toBeUndefined()
    await notifier.stop()
  })
})

describe('a receiver that fails', () => {
  it('is tried at most 30 s apart for ten minutes, then hourly', async () => {
    const ops = receiver('ops')
    const notifier = notifierFor(ops)
    await started(notifier, ops)
    ops.isDown = true
    await down('db')
    const { now } = test.core.store
    const begun = now()
    const tries: number[] = []
    while (now() - begun < 3 * HOUR_MS) {
      const before = ops.tries
      await notifier.tellDue()
      if (ops.tries > before) tries.push(Math.round((now() - begun) / 1_000))
      test.advance(now() - begun < 11 * MINUTE_MS ? 1_000 : MINUTE_MS)
    }
    const gaps = tries.slice(1).map((at, n) => at - (tries[n] ?? 0))
    const quick = gaps.filter((_, n) => (tries[n] ?? 0) < 600)
    expect(Math.max(...quick)).toBeLessThanOrEqual(31)
    expect(tries.length).toBeGreaterThan(20)
    expect(gaps.slice(quick.length).every((gap) => gap >= 3_600 && gap < 3_700)).toBe(true)
    ops.isDown = false
    expect(await notifier.test('ops', (await firstNotice()) as Notice)).toEqual({ isTaken: true })
    await told(notifier, ops, 2)
    await notifier.stop()
  })

  it('loses what is older than a day once it has failed for a day, and hears of that', async () => {
    const ops = receiver('ops')
    const other = receiver('other')
    const notifier = notifierFor(ops, other)
    await started(notifier, ops, other)
    ops.isDown = true
    await down('first')
    await eventually(async () => {
      notifier.tellDue()
      expect(ops.tries).toBeGreaterThan(0)
      expect((await test.core.store.receivers.find('ops'))?.failingSince).not.toBeNull()
    })
    test.advance(20 * HOUR_MS)
    await down('second')
    test.advance(4 * HOUR_MS + MINUTE_MS)
    ops.isDown = false
    await told(notifier, ops, 2)
    expect(titles(ops)).toEqual(['second is down', 'The receiver ops took nothing for a day'])
    expect(ops.took[1]?.data).toEqual({ receiver: 'ops', count: 1 })
    await told(notifier, other, 3)
    expect(test.logged()).toContain('notifications older than a day were given up')
    await notifier.stop()
  })

  it('slows no other: one that is silent, and one that is broken', async () => {
    const [silent, broken, good] = [receiver('silent'), receiver('broken'), receiver('good')]
    silent.isSilent = true
    broken.isDown = true
    const notifier = notifierFor(silent, broken, good)
    await started(notifier, silent, broken, good)
    for (let n = 0; n < 5; n += 1) await down(`db-${n}`)
    await told(notifier, good, 5)
    expect([silent.took.length, broken.took.length]).toEqual([0, 0])
    await notifier.stop()
  })

  it('has its failure logged once, without what it is', async () => {
    const ops = receiver('ops')
    const notifier = notifierFor(ops)
    await started(notifier, ops)
    ops.isDown = true
    await down('db')
    await eventually(async () => {
      test.advance(31_000)
      notifier.tellDue()
      expect(ops.tries).toBeGreaterThan(3)
    })
    const warnings = test
      .logged()
      .split('\n')
      .filter((line) => line.includes('did not take') && line.includes('"level":"warn"'))
    expect(warnings).toHaveLength(1)
    await notifier.stop()
  })
})

it('tells a new receiver only of what comes from now on', async () => {
  await down('db')
  test.advance(HOUR_MS)
  const ops = receiver('ops')
  const notifier = notifierFor(ops)
  await started(notifier, ops)
  await record('backend.up')
  await told(notifier, ops, 1)
  expect(titles(ops)).toEqual(['db works again'])
  await notifier.stop()
})

async function firstNotice(): Promise<Notice> {
  return {
    id: 'msg_test',
    type: 'test',
    at: 0,
    title: 'This is a test',
    lines: [],
    data: { by: ORIGIN.requestId },
  }
}
