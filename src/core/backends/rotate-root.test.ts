import Type from 'typebox'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { type Backend, type Kind, secretField, upstreamField } from '../../backends/kind.ts'
import { BackendError } from '../../domain/backend-error.ts'
import { callOnce } from './call-upstream.ts'
import { changeBackend, createBackend } from './configure-backend.ts'
import { readBackend } from './list-backends.ts'
import { resumeRotations, rotateRoot } from './rotate-root.ts'

/** An upstream with passwords: `replacing` has one at a time, `adding` keeps the old ones until they are ended. */
const config = Type.Object(
  {
    host: Type.String(upstreamField({})),
    way: Type.Union([Type.Literal('replacing'), Type.Literal('adding'), Type.Literal('fixed')]),
    password: Type.String(secretField({})),
    name: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
)
type Trouble = (step: string) => void
let valid: Set<string>
let trouble: Trouble
let steps: string[]
let proposal: Record<string, string> | undefined

const fake = {
  type: 'fake',
  title: 'Fake',
  config,
  params: Type.Object({}),
  limits: {},
  revocation: 'exact',
  upstream: true,
  scopes: { valid: () => true, forms: [], help: '' },
  open: async ({ password, way }: Type.Static<typeof config>) => {
    const log = (step: string) => {
      steps.push(`${step} by ${password}`)
      trouble(step)
      if (!valid.has(password)) throw new BackendError('denied', 'Wrong password.')
    }
    const replacing = {
      propose: async () => proposal ?? { password: `p${steps.length}` },
      adopt: async (next: Readonly<Record<string, string>>) => {
        log('adopt')
        if (way === 'replacing') valid.clear()
        valid.add(next['password'] ?? '')
        trouble('adopted')
      },
    }
    const adding = {
      ...replacing,
      finish: async (old: Readonly<Record<string, string>>) => {
        log('finish')
        valid.delete(old['password'] ?? '')
      },
    }
    return {
      check: async () => {
        log('check')
        return []
      },
      issue: async () => {
        log('issue')
        return { secret: 's', handle: {} }
      },
      revoke: async () => log('revoke'),
      recover: () => ({}),
      ...(way === 'fixed' ? {} : { rotation: way === 'adding' ? adding : replacing }),
      [Symbol.asyncDispose]: async () => undefined,
    } as unknown as Backend
  },
} as unknown as Kind

let world: TestCore
let core: TestCore['core']
beforeEach(async () => {
  valid = new Set(['old'])
  steps = []
  proposal = undefined
  trouble = () => undefined
  world = await testCore({}, [fake])
  core = world.core
})
afterEach(() => world.close())

const add = async (way: 'replacing' | 'adding' | 'fixed') => {
  const settings = { host: 'a', way, password: 'old' }
  return createBackend(core, LOCAL, { type: 'fake', name: 'db', config: settings }, false)
}
const backend = async () => {
  const caller = { ...LOCAL.caller, generation: await core.store.generation() }
  return readBackend(core, caller, 'db')
}
const password = async () => (await backend()).config?.['password']
const used = async () =>
  callOnce(core, await backend(), async (instance, signal) => instance.issue({} as never, signal))
const unavailable = (at: string) => (step: string) => {
  if (step === at) throw new BackendError('unavailable', 'Away.', { detail: 'FATAL: hunter2' })
}
const change = (settings: Record<string, unknown>) =>
  changeBackend(core, LOCAL, 'db', settings, { check: false, force: false })

it.each(['replacing', 'adding'] as const)('replaces the secret of an upstream that is %s', async (way) => {
  const { version } = await add(way)
  const rotated = await rotateRoot(core, LOCAL, 'DB')
  expect(rotated).toMatchObject({ name: 'db', fields: ['password'], isResumed: false, isFinished: true })
  const now = await backend()
  expect([...valid]).toEqual([now.config?.['password']])
  expect([now.version, now.rotation]).toEqual([version + 1, undefined])
  expect(await world.audit('backend.root_rotated')).toMatchObject([
    { actor: 'local', backend: 'db', facts: { fields: ['password'] } },
  ])
  await used()
})

it('refuses a backend without such a secret, and one whose secret does not work', async () => {
  await add('fixed')
  await expect(rotateRoot(core, LOCAL, 'db')).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringMatching(/no root secret that Mayfly can replace/),
  })
  await expect(rotateRoot(core, LOCAL, 'other')).rejects.toMatchObject({ code: 'backend_not_found' })
  await change({ config: { host: 'a', way: 'adding', password: 'wrong' } })
  const refused = rotateRoot(core, LOCAL, 'db')
  await expect(refused).rejects.toMatchObject({ message: 'The root secret was not rotated. Wrong password.' })
  expect((await backend()).rotation).toBeUndefined()
})

it('knows the secret that works when the answer to its adoption is lost, and completes the rotation', async () => {
  await add('replacing')
  trouble = unavailable('adopted')
  await expect(rotateRoot(core, LOCAL, 'db')).rejects.toMatchObject({
    code: 'backend_unavailable',
    message: expect.stringMatching(/not complete.*keeps both secrets/),
    detail: 'Away.: FATAL: hunter2',
  })
  expect([await password(), valid.has('old')]).toEqual(['old', false])
  // By the present secret, then by the proposal; from then on by that at once.
  steps = []
  await used()
  await used()
  expect(steps).toEqual([
    'issue by old',
    expect.stringMatching(/^issue by p/),
    expect.stringMatching(/^issue by p/),
  ])
  await resumeRotations(core)
  expect((await backend()).rotation).toBeDefined()
  trouble = () => undefined
  await resumeRotations(core)
  expect([...valid]).toEqual([await password()])
  expect((await backend()).rotation).toBeUndefined()
  expect(await world.audit('backend.root_rotated')).toMatchObject([
    { actor: 'local', facts: { resumed: true } },
  ])
  expect(await rotateRoot(core, LOCAL, 'db')).toMatchObject({ isResumed: false })
})

it('completes an interrupted rotation on the next request, with its proposal', async () => {
  await add('replacing')
  trouble = unavailable('adopt')
  await expect(rotateRoot(core, LOCAL, 'db')).rejects.toMatchObject({ code: 'backend_unavailable' })
  trouble = () => undefined
  await used()
  expect(await rotateRoot(core, LOCAL, 'db')).toMatchObject({ isResumed: true })
  await used()
  expect([...valid]).toEqual([await password()])
})

it('forgets a proposal that the upstream refuses while the present secret works', async () => {
  await add('adding')
  trouble = (step) => {
    if (step === 'adopt') throw new BackendError('misconfigured', 'Too simple.')
  }
  await expect(rotateRoot(core, LOCAL, 'db')).rejects.toMatchObject({
    message: 'The root secret was not rotated. Too simple.',
  })
  expect([await password(), (await backend()).rotation]).toEqual(['old', undefined])
})

it('takes no proposal that means another upstream', async () => {
  await add('replacing')
  proposal = { password: 'p', host: 'elsewhere' }
  await expect(rotateRoot(core, LOCAL, 'db')).rejects.toMatchObject({ code: 'backend_error' })
  proposal = { name: 'no secret' }
  await expect(rotateRoot(core, LOCAL, 'db')).rejects.toMatchObject({ code: 'backend_error' })
  expect([await password(), (await backend()).rotation]).toEqual(['old', undefined])
  proposal = { password: 'p', name: 'its name' }
  expect((await rotateRoot(core, LOCAL, 'db')).fields).toEqual(['password', 'name'])
})

it('ends the old secret later where that fails', async () => {
  await add('adding')
  trouble = unavailable('finish')
  expect(await rotateRoot(core, LOCAL, 'db')).toMatchObject({ isFinished: false })
  expect(valid.has('old')).toBe(true)
  expect((await backend()).rotation).toMatchObject({ proposed: undefined })
  trouble = () => undefined
  await resumeRotations(core)
  expect([...valid]).toEqual([await password()])
  expect((await backend()).rotation).toBeUndefined()
})

it('leaves an old secret alone that was entered again before it was ended', async () => {
  await add('adding')
  trouble = unavailable('finish')
  await rotateRoot(core, LOCAL, 'db')
  trouble = () => undefined
  await change({ config: { host: 'a', way: 'adding', password: 'old' } })
  await resumeRotations(core)
  expect((await backend()).rotation).toBeUndefined()
  await used()
})

it('lets one rotation run at a time', async () => {
  await add('replacing')
  const { promise, resolve } = Promise.withResolvers<void>()
  let asked: Promise<unknown> = Promise.resolve()
  world.before(
    (steps) => steps.some((step) => step.op === 'run' && step.sql.includes('rotation')),
    async () => {
      asked = rotateRoot(core, LOCAL, 'db').catch((error: unknown) => error)
      await asked
      resolve()
    },
  )
  await rotateRoot(core, LOCAL, 'db')
  await promise
  expect(await asked).toMatchObject({ code: 'conflict' })
  await used()
})

it('takes no other secret while a rotation runs', async () => {
  await add('replacing')
  let entered: Promise<unknown> | undefined
  const enter = () => change({ config: { host: 'a', way: 'replacing', password: 'entered' } })
  trouble = (step) => {
    if (step === 'adopted') entered = enter().catch((error: unknown) => error)
  }
  await rotateRoot(core, LOCAL, 'db')
  expect(await entered).toMatchObject({ code: 'conflict' })
  await used()
})

it('keeps a proposal while the configuration changes beside it, until the secret is entered', async () => {
  await add('replacing')
  trouble = unavailable('adopt')
  await rotateRoot(core, LOCAL, 'db').catch(() => undefined)
  await change({ description: 'busy' })
  await expect(change({ config: { host: 'a', way: 'adding' } })).rejects.toMatchObject({ code: 'conflict' })
  expect((await backend()).rotation?.proposed).toBeDefined()
  await change({ config: { host: 'a', way: 'replacing', password: 'entered' } })
  expect([await password(), (await backend()).rotation]).toEqual(['entered', undefined])
})

it('follows a secret that was replaced while a call was under way', async () => {
  await add('replacing')
  const before = await backend()
  await rotateRoot(core, LOCAL, 'db')
  await callOnce(core, before, async (instance, signal) => instance.issue({} as never, signal))
})
