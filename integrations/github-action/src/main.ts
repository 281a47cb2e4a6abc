import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fieldOf } from '../../../src/cli/project-file/credential-field.ts'
import { type HeldCredential, requireToken } from '../../../src/cli/session/held-credential.ts'
import type { Client } from '../../../src/client/client.ts'
import { parseDuration } from '../../../src/domain/duration.ts'
import { MAX_PURPOSE_LENGTH } from '../../../src/domain/limits.ts'
import { isLoopbackHost } from '../../../src/domain/network/loopback.ts'
import { isOpenField } from '../../../src/domain/open-fields.ts'
import { endSession } from './end.ts'
import { failureText } from './failure.ts'
import {
  ActionError,
  exportVariable,
  inputOf,
  mask,
  type Runner,
  runner,
  saveState,
  say,
  setOutput,
  variableOf,
} from './runner.ts'
import { clientOf, newDirectory, type Place, readSession, tokensIn, writeSession } from './session.ts'
import { readWanted, type Wanted } from './wanted.ts'

/** Logs in, begins a run that lives as long as the job, and exports what was asked for. */
async function main(given: Runner): Promise<void> {
  const wanted = readWanted(inputOf(given, 'env'))
  const place = readPlace(given)
  const directory = newDirectory(variableOf(given, 'RUNNER_TEMP'))
  saveState(given.env, 'directory', directory)
  writeSession(directory, place)
  const client = clientOf(given.env, place, tokensIn(directory, place))
  try {
    const run = await begin(given, client)
    writeSession(directory, { ...place, ...readSession(directory), ...run })
    startBeating(given, directory)
    await deliver(given, client, wanted, run.run)
    exportVariable(given.env, 'MAYFLY_SERVER', place.server)
    setOutput(given.env, 'run', run.run)
  } catch (error) {
    // The job may go on without this step: nothing of it is to be left.
    await endSession(given, directory).catch(() => {})
    throw error
  }
}

function readPlace(given: Runner): Place {
  const text = inputOf(given, 'server')
  const url = /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || url.username + url.password + url.search + url.hash !== '')
    throw new ActionError('The input server must be an address such as https://mayfly.example.com.')
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname))
    throw new ActionError('The input server must begin with https://: secrets would travel unencrypted.')
  const server = url.href.replace(/\/+$/, '')
  const audience = inputOf(given, 'audience') || server
  if (!/^[\x21-\x7e]{1,1000}$/.test(audience))
    throw new ActionError('The input audience must be text without white space.')
  return { server, audience }
}

const RUN_ID = /^run_[0-9a-z]{26}$/

async function begin(given: Runner, client: Client): Promise<{ run: string; heartbeatMs: number }> {
  const heartbeat = inputOf(given, 'heartbeat') || '30s'
  const { id, heartbeat: agreed } = await client.runs.start({ purpose: purposeOf(given), heartbeat })
  const heartbeatMs = parseDuration(agreed)
  if (!RUN_ID.test(id) || heartbeatMs === undefined)
    throw new ActionError('What answered does not look like a Mayfly server.')
  return { run: id, heartbeatMs }
}

/** A workflow may have any name. */
function purposeOf(given: Runner): string {
  const { GITHUB_REPOSITORY = '', GITHUB_WORKFLOW = '', GITHUB_JOB = '' } = given.env
  const text = inputOf(given, 'purpose') || `${GITHUB_REPOSITORY}: ${GITHUB_WORKFLOW}, job ${GITHUB_JOB}`
  return text.replaceAll(/[\p{C}\p{Z}]+/gu, ' ').slice(0, MAX_PURPOSE_LENGTH)
}

/** In a process of its own, because this one ends now. The runner ends it with the job. */
function startBeating({ env }: Runner, directory: string): void {
  const script = join(import.meta.dirname, 'beat.mjs')
  const parent = watchedParent()
  const child = spawn(process.execPath, [script, directory, ...(parent === undefined ? [] : [parent])], {
    detached: true,
    stdio: 'ignore',
    windowsHide: true,
    env: { ...env },
  })
  child.once('error', () => {})
  child.unref()
}

/** The process of the runner that lives as long as the job, where it can be told from a shell that ends with this step. */
function watchedParent(): string | undefined {
  try {
    const line = readFileSync(`/proc/${process.ppid}/cmdline`, 'utf8')
    return line.includes('Runner.Worker') ? String(process.ppid) : undefined
  } catch {
    return undefined
  }
}

/** Nothing is exported unless everything was issued, and masked before. */
async function deliver(given: Runner, client: Client, wanted: readonly Wanted[], run: string): Promise<void> {
  const backends = [...new Set(wanted.map(({ backend }) => backend))]
  const credentials = new Map(
    await Promise.all(backends.map(async (backend) => [backend, await issue(client, backend, run)] as const)),
  )
  for (const { token } of credentials.values()) mask(given, token)
  const values = wanted.flatMap(({ variable, backend, field }) => {
    const credential = credentials.get(backend)
    if (credential === undefined) return []
    const value = fieldOf(credential, field)
    if (!isOpenField(field)) mask(given, value)
    if (value.includes('\0')) throw new ActionError(`The value for ${variable} contains a NUL byte.`)
    return [[variable, value] as const]
  })
  for (const [name, value] of values) exportVariable(given.env, name, value)
}

async function issue(client: Client, backend: string, run: string): Promise<HeldCredential> {
  try {
    return requireToken(await client.issue({ backend, run }))
  } catch (error) {
    throw new ActionError(`${backend}: ${failureText(error)}`, { cause: error })
  }
}

try {
  await main(runner)
} catch (error) {
  say(runner, 'error', failureText(error))
  process.exitCode = 1
}
