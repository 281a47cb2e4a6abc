import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { LONG } from '../../support/long.ts'
import { isInstalled } from '../../support/run-program.ts'
import { pathWithAws } from '../support/aws-cli.ts'
import { type AwsWorld, OWN_ENDPOINT, startAwsWorld } from '../support/aws-world.ts'
import type { ClientWorld } from '../support/client-world.ts'
import { memoryOf } from '../support/memory-of.ts'

const S3 = fileURLToPath(new URL('./programs/s3.mjs', import.meta.url))
const MIB = 1024 * 1024
const SIZE = (LONG ? 1024 : 100) * MIB
/** What a proxy that kept a body in memory would need many times over. */
const MOST_MEMORY = 320 * MIB

let world: AwsWorld
beforeAll(async () => {
  world = await startAwsWorld(3 * SIZE)
}, 180_000)
afterAll(() => world?.close())
afterEach(() => {
  for (const { misused, lines } of [world.own, world.aws]) misused.length = lines.length = 0
})

interface Done {
  readonly status?: number
  readonly error?: string
  readonly message?: string
  readonly body?: string
  readonly url?: string
}
type Step = readonly [command: string, input: object, how?: object]
/** Each is where the SDK finds S3: `AWS_ENDPOINT_URL`, or a host of its own by HTTPS_PROXY. */
interface Way {
  readonly child: () => ClientWorld
  readonly run: ClientWorld['run']
  readonly options: object
}

const site = (child: () => ClientWorld): Way => ({
  child,
  run: (command, more) => child().run(command, more),
  options: {},
})
const forward = (child: () => ClientWorld, options: object, more: Record<string, string> = {}): Way => ({
  child,
  run: (command, other) => child().runForward(command, { ...more, ...other }),
  options,
})
const OWN_URL = `https://${OWN_ENDPOINT}`
/** The SDK sends what waits for a go-ahead by an agent of its own, which knows no proxy. */
const NO_EXPECT = { expectContinueHeader: false }
const WAYS: Readonly<Record<string, Way>> = {
  'an endpoint of its own by its base URL': site(() => world.own),
  'an endpoint of its own by HTTPS_PROXY': forward(
    () => world.own,
    { forcePathStyle: true, ...NO_EXPECT },
    { AWS_ENDPOINT_URL: OWN_URL },
  ),
  'AWS by its base URL': site(() => world.aws),
  'AWS by HTTPS_PROXY': forward(() => world.aws, NO_EXPECT),
}

async function sdk({ run, options }: Way, ...steps: readonly Step[]): Promise<Done[]> {
  const more = { S3_OPTIONS: JSON.stringify(options) }
  const { stdout, stderr } = await run([process.execPath, S3, JSON.stringify(steps)], more)
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout)
}

const Bucket = 'reports'
const KEYS = [
  'plain',
  'with space/a b.txt',
  'plus+sign',
  'per%2Fcent%',
  'a//b///c',
  'üñï/日本語',
  "q?x=1&y#'()*!~",
]

describe.each(Object.entries(WAYS))('the AWS SDK: %s', (_, way) => {
  it('writes, reads and deletes under any key', async () => {
    const steps = KEYS.flatMap((Key): Step[] => [
      ['PutObject', { Bucket, Key }, { text: `of ${Key}` }],
      ['GetObject', { Bucket, Key }],
      ['DeleteObject', { Bucket, Key }],
    ])
    const done = await sdk(way, ...steps)
    const expected = KEYS.flatMap((Key) => [
      { status: 200 },
      { status: 200, body: `of ${Key}` },
      { status: 204 },
    ])
    expect(done).toMatchObject(expected)
    expect(way.child().misused).toEqual([])
  })

  it('lists, and streams a body', async () => {
    const Key = `streams/${Object.values(WAYS).indexOf(way)}`
    const done = await sdk(
      way,
      ['PutObject', { Bucket, Key }, { stream: 64 }],
      ['ListObjectsV2', { Bucket, Prefix: 'streams/', StartAfter: 'a b+c/%2F' }],
      ['DeleteObject', { Bucket, Key }],
    )
    expect(done).toMatchObject([{ status: 200 }, { status: 200 }, { status: 204 }])
    expect(JSON.stringify(done[1])).toContain(`"Key":"${Key}"`)
    expect(JSON.stringify(done[1])).toContain(`"Size":${4 * MIB}`)
  })

  it('is refused another service, and is told so', async () => {
    const steps = ['sts', 'iam', 'secretsmanager'].map((service): Step => ['raw', { service, path: '/' }])
    const done = await sdk(way, ...steps)
    for (const one of done)
      expect(one).toMatchObject({
        status: 403,
        body: expect.stringMatching(/proxy_(?:service_not_allowed|denied)/),
      })
    expect(way.child().lines.map(({ decision }) => decision)).toEqual(['refused', 'refused', 'refused'])
  })
})

describe('a credential for reading', () => {
  const way = site(() => world.narrow)

  it('is refused writing, in the form that S3 has for errors', async () => {
    const [put, signed] = await sdk(
      way,
      ['PutObject', { Bucket, Key: 'any' }, { text: 'any' }],
      ['presign', { method: 'PUT', path: `/${Bucket}/any` }],
    )
    const message = 'The rules of the backend allow this path, but not with this method.'
    expect(put).toMatchObject({ status: 403, error: 'proxy_method_not_allowed', message })
    const error = `<Error><Code>proxy_method_not_allowed</Code><Message>${message}</Message></Error>`
    expect(signed).toMatchObject({ status: 403, body: `<?xml version="1.0" encoding="UTF-8"?>\n${error}` })
  })
})

describe('a presigned URL that is made with the placeholder', () => {
  const way = WAYS['an endpoint of its own by its base URL'] as Way
  const path = `/${Bucket}/presigned%20key`

  it('works, and shows no secret', async () => {
    const [, signed] = await sdk(
      way,
      ['PutObject', { Bucket, Key: 'presigned key' }, { text: 'here' }],
      ['presign', { path }],
    )
    expect(signed).toMatchObject({ status: 200, body: 'here' })
    for (const name of ['access_key_id', 'session_token'])
      expect(decodeURIComponent(signed?.url ?? '')).not.toContain(world.fields[name])
  })

  it.each([
    ['a longer time', { change: { 'X-Amz-Expires': '604800' } }],
    ['another signature', { change: { 'X-Amz-Signature': '0'.repeat(64) } }],
    ['another parameter', { change: { versionId: 'x' } }],
  ])('is refused with %s', async (_, change) => {
    const [done] = await sdk(way, ['presign', { path, ...change }])
    expect(done).toMatchObject({ status: 400, body: expect.stringContaining('proxy_bad_signature') })
  })
})

describe('a signature', () => {
  const way = WAYS['an endpoint of its own by its base URL'] as Way
  const raw = async (step: object) => {
    const [done] = await sdk(way, ['raw', { service: 's3', method: 'PUT', path: `/${Bucket}/raw`, ...step }])
    return done
  }

  it('must be right, and is made anew', async () => {
    expect(await raw({})).toMatchObject({ status: 200 })
    const wrong: object[] = [
      { spoil: ['Signature=[0-9a-f]{64}', `Signature=${'0'.repeat(64)}`] },
      { spoil: ['Signature=[0-9a-f]{64}', 'Signature=abc'] },
      { spoil: ['SignedHeaders=[^,]*', 'SignedHeaders=host;x-amz-date'] },
      { spoil: ['/us-east-1/', '/eu-west-1/'] },
      { headers: { 'x-amz-date': '20200101T000000Z' } },
      { extra: { 'x-amz-meta-a': 'b' }, headers: { 'x-amz-meta-a': 'c' } },
    ]
    for (const one of wrong)
      expect({ one, done: await raw(one) }).toMatchObject({
        done: { status: 400, body: expect.stringContaining('proxy_bad_signature') },
      })
  })

  it.each([
    WAYS['an endpoint of its own by its base URL'],
    WAYS['AWS by its base URL'],
    WAYS['AWS by HTTPS_PROXY'],
  ])('of each chunk of an upload is checked, and made anew', async (one) => {
    const chunks = [64 * 1024, 8192, 64 * 1024, 1]
    const path = one === WAYS['AWS by HTTPS_PROXY'] ? `/${Bucket}/a/ch%20unks` : `/${Bucket}/chunks`
    const [put, got, ...wrong] = await sdk(
      one as Way,
      ['chunked', { path, chunks }],
      ['GetObject', { Bucket, Key: decodeURIComponent(path).slice(`/${Bucket}/`.length) }],
      ['chunked', { path: `${path}-0`, chunks, spoil: 0 }],
      ['chunked', { path: `${path}-2`, chunks, spoil: 2 }],
      ['chunked', { path: `${path}-4`, chunks, spoil: 4 }],
    )
    expect(put).toMatchObject({ status: 200 })
    expect(got?.body).toBe('c'.repeat(chunks.reduce((sum, size) => sum + size, 0)))
    for (const refused of wrong)
      expect(refused).toMatchObject({ status: 400, body: expect.stringContaining('proxy_bad_signature') })
  })

  it('for S3 opens neither STS nor IAM of a gateway that has them at the same address', async () => {
    const { accessKeyId, secretAccessKey } = world.user
    const keys = {
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_SESSION_TOKEN: '',
    }
    const asked = { service: 's3', method: 'POST', path: '/' }
    // So that it can fail: the gateway answers it.
    const there = await sdk(
      {
        ...way,
        run: (command, more) => way.run(command, { ...more, ...keys, AWS_ENDPOINT_URL: world.rgw.endpoint }),
      },
      ['raw', asked],
    )
    expect(there).toMatchObject([{ status: 200, body: expect.stringContaining('<SecretAccessKey>') }])
    for (const path of ['/', '//', '/?Action=AssumeRole', '/%2F', '/;a'])
      expect({ path, done: await raw({ ...asked, path }) }).toMatchObject({ done: { status: 403 } })
    expect(world.own.lines.map(({ reason }) => reason)).toEqual(Array(5).fill('denied'))
  })
})

describe.skipIf(!isInstalled('aws'))('the AWS CLI (needs aws)', () => {
  let directory: string
  let PATH: string
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'mf-aws-'))
    PATH = pathWithAws(process.env['PATH'] ?? '', directory)
  })
  afterAll(() => rm(directory, { recursive: true, force: true }))
  const cli = (name: string): Way => {
    const way = WAYS[name] as Way
    return { ...way, run: (command, more) => way.run(command, { PATH, ...more }) }
  }
  const CLI: Readonly<Record<string, Way>> = {
    'a base URL': cli('an endpoint of its own by its base URL'),
    HTTPS_PROXY: cli('an endpoint of its own by HTTPS_PROXY'),
    'AWS by its base URL': cli('AWS by its base URL'),
    'AWS by HTTPS_PROXY': cli('AWS by HTTPS_PROXY'),
  }

  it.each(Object.entries(CLI))('copies a small file up and down by %s', async (_, { run }) => {
    const key = `s3://${Bucket}/cli/a b+c%2Fü.txt`
    const command = `printf small > small && aws s3 cp small '${key}' && aws s3 cp '${key}' back && cat back && aws s3 ls '${key}'`
    const end = await run(['sh', '-c', command])
    expect(end).toMatchObject({ code: 0, stdout: expect.stringContaining('small') })
  })

  it.each([
    ['a base URL', SIZE],
    ['HTTPS_PROXY', 100 * MIB],
  ])(
    'copies a large file in many parts by %s',
    async (name, size) => {
      const { run, child } = CLI[name] as Way
      const { directory: place, lines } = child()
      const key = `s3://${Bucket}/large`
      const made = `openssl rand -out large ${size}`
      expect(await run(['sh', '-c', made])).toMatchObject({ code: 0 })
      const named = `aws s3 cp of ${size / MIB} MiB by ${name}`
      const up = await memoryOf(`${named}, up`, async () => {
        expect(await run(['aws', 's3', 'cp', '--no-progress', 'large', key])).toMatchObject({ code: 0 })
      })
      const head = await run(['aws', 's3api', 'head-object', '--bucket', Bucket, '--key', 'large'])
      const { ContentLength, ETag } = JSON.parse(head.stdout)
      expect(ContentLength).toBe(size)
      // Of many parts.
      expect(ETag).toMatch(/-\d+"$/)
      const down = await memoryOf(`${named}, down`, async () => {
        expect(await run(['aws', 's3', 'cp', '--no-progress', key, 'back'])).toMatchObject({ code: 0 })
      })
      expect(Math.max(up, down)).toBeLessThan(MOST_MEMORY)
      expect(await hashOf(join(place, 'back'))).toBe(await hashOf(join(place, 'large')))
      expect(lines.some(({ method, status }) => method === 'PUT' && status === 200)).toBe(true)
      expect(lines.filter(({ decision }) => decision !== 'injected')).toEqual([])
      await run(['sh', '-c', `rm large back; aws s3 rm ${key}`])
    },
    600_000,
  )

  it('says why a credential for reading is refused writing', async () => {
    const put = `aws s3api put-object --bucket ${Bucket} --key any --body any`
    const { stderr } = await world.narrow.run(['sh', '-c', `echo any >any; ${put}`], { PATH })
    expect(stderr).toContain('(proxy_method_not_allowed) when calling the PutObject operation: The rules of')
  })

  it('is refused STS and IAM, and another authority', async () => {
    const { run } = CLI['a base URL'] as Way
    const sts = await run(['aws', 'sts', 'get-session-token'])
    expect(sts.code).not.toBe(0)
    const iam = await run(['aws', 'iam', 'create-access-key', '--user-name', 'x'])
    expect(iam.code).not.toBe(0)
    expect(world.own.lines.map(({ decision, status }) => [decision, status])).toEqual([
      ['refused', 403],
      ['refused', 403],
    ])
    for (const { stderr } of [sts, iam])
      expect(stderr).toContain('A rule of the backend denies this request.')
    const elsewhere = await CLI['HTTPS_PROXY']?.run(['aws', 's3', 'ls', `s3://${Bucket}`], {
      AWS_ENDPOINT_URL: 'https://s3.us-east-1.amazonaws.com',
    })
    expect(elsewhere?.code).not.toBe(0)
    expect(world.own.misused).toContain('cloud')
  })
})

it('gives the children no secret', () => {
  const secrets = ['access_key_id', 'secret_access_key', 'session_token'].map((name) => world.fields[name])
  for (const secret of secrets)
    for (const child of [world.own, world.aws]) expect(JSON.stringify(child.env)).not.toContain(secret)
})

async function hashOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const part of createReadStream(file)) hash.update(part)
  return hash.digest('hex')
}
