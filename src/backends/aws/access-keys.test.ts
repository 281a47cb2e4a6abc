import { afterEach, beforeEach, expect, it } from 'vitest'
import { newRequest } from '../../../test/contract/open-kind.ts'
import { type FakeAws, ROLE, startFakeAws } from '../../../test/support/fakes/aws.ts'
import { createTestHost } from '../../../test/support/host.ts'
import { longestRotationMs } from '../../domain/limits.ts'
import type { Rotation } from '../kind.ts'
import type { Config } from './config.ts'
import { aws } from './kind.ts'

let fake: FakeAws
let settings: Config
let host: ReturnType<typeof createTestHost>['host']
let now: number
beforeEach(async () => {
  fake = await startFakeAws()
  const { id, secret } = fake.addKey()
  const key = { access_key_id: id, secret_access_key: secret }
  settings = { role_arn: ROLE, region: 'eu-west-1', endpoint: fake.url, local: true, ...key }
  now = Date.now()
  host = { ...createTestHost('cloud').host, now: () => now }
})
afterEach(() => fake[Symbol.asyncDispose]())

const signal = () => AbortSignal.timeout(10_000)
const ids = () => fake.keys.map(({ id }) => id)
const open = (next: Partial<Config> = {}) => aws.open({ ...settings, ...next }, host)
async function rotation(next: Partial<Config> = {}): Promise<Rotation> {
  const { rotation } = await open(next)
  if (rotation === undefined) throw new Error('no rotation')
  return rotation
}
const later = () => {
  now += 2 * longestRotationMs(host.timeoutMs)
}

it('replaces the access key by one that STS accepts', async () => {
  const next = await (await rotation()).propose(signal())
  expect(next).toEqual({ access_key_id: ids()[1], secret_access_key: fake.keys[1]?.secret })
  await (await rotation()).adopt(next, signal())
  // From now on at every server of STS.
  const backend = await open(next)
  const request = { ...newRequest(['*'], { ttlMs: 900_000 }), params: {} }
  await backend.issue(request, signal())
  // Again after a crash, also by the new key.
  await backend.rotation?.adopt(next, signal())
  const { access_key_id = '', secret_access_key = '' } = settings
  for (let time = 0; time < 2; time++)
    await backend.rotation?.finish?.({ access_key_id, secret_access_key }, signal())
  expect(ids()).toEqual([next['access_key_id']])
  await expect((await open()).check(signal())).rejects.toMatchObject({ fault: 'denied' })
})

it('has nothing to replace where it identifies with an id token', async () => {
  const { access_key_id: _, secret_access_key: __, ...without } = settings
  expect((await aws.open(without, host)).rotation).toBeUndefined()
})

it('ends the key of an interrupted rotation first, once no other one can be using it', async () => {
  const left = (await (await rotation()).propose(signal()))['access_key_id']
  await expect((await rotation()).propose(signal())).rejects.toMatchObject({ fault: 'unavailable' })
  expect(ids()).toContain(left)
  later()
  const next = await (await rotation()).propose(signal())
  expect(ids()).toEqual([settings.access_key_id, next['access_key_id']])
  // It is the one in use now, so the next rotation keeps it and waits for nothing.
  fake.keys.shift()
  await (await rotation(next)).propose(signal())
  expect(ids()).toContain(next['access_key_id'])
})

it("leaves a person's key alone, and says what to do", async () => {
  const other = fake.addKey().id
  const refused = (await rotation()).propose(signal())
  await expect(refused).rejects.toMatchObject({
    fault: 'misconfigured',
    message: expect.stringContaining(
      `"aws iam delete-access-key --user-name mayfly --access-key-id ${other}"`,
    ),
  })
  expect(ids()).toEqual([settings.access_key_id, other])
})

it('takes a key whose answer was lost for one of a person', async () => {
  fake.interrupt('POST /', async () => {
    fake.addKey()
    return { status: 503, body: '' }
  })
  await expect((await rotation()).propose(signal())).rejects.toMatchObject({ fault: 'unavailable' })
  later()
  await expect((await rotation()).propose(signal())).rejects.toThrow('another one')
  expect(ids()).toHaveLength(2)
})

it.each(['refuses', 'fails'])('makes no key that it has not recorded, if the store %s', async (how) => {
  host = {
    ...host,
    state: {
      ...host.state,
      async replace() {
        if (how === 'fails') throw new Error('no store')
        return false
      },
    },
  }
  await expect((await rotation()).propose(signal())).rejects.toThrow()
  expect(ids()).toEqual([settings.access_key_id])
})

it('waits for a key until its time is over, and never calls it refused', async () => {
  const next = await (await rotation()).propose(signal())
  for (const key of fake.keys.slice(1)) key.unknownFor = Number.POSITIVE_INFINITY
  const adopted = (await rotation()).adopt(next, AbortSignal.timeout(700))
  await expect(adopted).rejects.toMatchObject({ name: 'BackendError', fault: 'timeout' })
})

it.each(['CreateAccessKey', 'DeleteAccessKey'])(
  'names the permissions where %s is missing',
  async (action) => {
    fake.forbidden.add(`iam:${action}`)
    const { propose, finish } = await rotation()
    const work = action === 'CreateAccessKey' ? propose(signal()) : finish?.({ access_key_id: 'x' }, signal())
    await expect(work).rejects.toMatchObject({
      fault: 'denied',
      message: expect.stringContaining(`iam:${action}`),
    })
  },
)

it('goes to the IAM of the partition', async () => {
  const asked: string[] = []
  host = {
    ...host,
    fetch: async (url, init) => {
      asked.push(`${url} ${/Credential=\w+\/\d+\/([\w-]+\/\w+)/.exec(JSON.stringify(init))?.[1]}`)
      throw new Error('not here')
    },
  }
  const { endpoint: _, ...anywhere } = settings
  for (const partition of [
    'aws',
    'aws-cn',
    'aws-us-gov',
    'aws-eusc',
    'aws-iso',
    'aws-iso-b',
    'aws-iso-e',
    'aws-iso-f',
  ]) {
    const role_arn = ROLE.replace('aws', partition)
    const backend = await aws.open({ ...anywhere, role_arn }, host)
    await expect(backend.rotation?.propose(signal())).rejects.toThrow('not here')
  }
  expect(asked).toEqual([
    'https://iam.amazonaws.com/ us-east-1/iam',
    'https://iam.cn-north-1.amazonaws.com.cn/ cn-north-1/iam',
    'https://iam.us-gov.amazonaws.com/ us-gov-west-1/iam',
    'https://iam.eusc-de-east-1.amazonaws.eu/ eusc-de-east-1/iam',
    'https://iam.us-iso-east-1.c2s.ic.gov/ us-iso-east-1/iam',
    'https://iam.us-isob-east-1.sc2s.sgov.gov/ us-isob-east-1/iam',
    'https://iam.eu-isoe-west-1.cloud.adc-e.uk/ eu-isoe-west-1/iam',
    'https://iam.us-isof-south-1.csp.hci.ic.gov/ us-isof-south-1/iam',
  ])
})
