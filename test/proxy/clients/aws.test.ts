import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HeadObjectCommand } from '@aws-sdk/client-s3'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { LONG } from '../../support/long.ts'
import { isInstalled } from '../../support/run-program.ts'
import { type AwsWorld, OWN_ENDPOINT, startAwsWorld } from '../support/aws-world.ts'
import type { ClientWorld } from '../support/client-world.ts'

const S3 = fileURLToPath(new URL('./programs/s3.mjs', import.meta.url))
const MIB = 1024 * 1024
const SIZE = (LONG ? 1024 : 100) * MIB

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
const WAYS: Readonly<Record<string, Way>> = {
  'an endpoint of its own by its base URL': site(() => world.own),
  'an endpoint of its own by HTTPS_PROXY': forward(
    () => world.own,
    { endpoint: OWN_URL, forcePathStyle: true },
    { AWS_ENDPOINT_URL: OWN_URL },
  ),
  'AWS by its base URL': site(() => world.aws),
  'AWS by HTTPS_PROXY': forward(() => world.aws, {}),
}

async function sdk({ run, options }: Way, ...steps: readonly Step[]): Promise<Done[]> {
  const more = { S3_OPTIONS: JSON.stringify(options) }
  const { stdout, stderr } = await run([process.execPath, S3, JSON.stringify(steps)], more)
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout)
}

const Bucket = 'reports'
const KEYS = ['plain', 'with space/a b.txt', 'plus+sign', 'per%2Fcent%', 'a//b///c', 'üñï/日本語', "q?x=1&y#'()*!~"]

describe.each(Object.entries(WAYS))('the AWS SDK: %s', (_, way) => {
  it('writes, reads and deletes under any key', async () => {
    for (const Key of KEYS) {
      const [put, got, gone] = await sdk(
        way,
        ['PutObject', { Bucket, Key }, { text: `of ${Key}` }],
        ['GetObject', { Bucket, Key }],
        ['DeleteObject', { Bucket, Key }],
      )
      expect({ Key, put, got, gone }).toMatchObject({
        put: { status: 200 },
        got: { status: 200, body: `of ${Key}` },
        gone: { status: 204 },
      })
    }
    expect(way.child().misused).toEqual([])
  })
})
