import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AccessToken, TokenCache } from '../../../src/client/access-tokens.ts'
import { type Client, createClient } from '../../../src/client/client.ts'
import { parseJson } from '../../../src/domain/formats/json.ts'
import { requestIdToken } from './id-token.ts'
import type { Runner } from './runner.ts'

/** Where and as whom this job logs in. */
export interface Place {
  /** The address, without a slash at its end. */
  readonly server: string
  readonly audience: string
}

/** What the steps of this action, and the process that beats, share. */
export interface Session extends Place {
  readonly run?: string | undefined
  readonly heartbeatMs?: number | undefined
  readonly token?: AccessToken | undefined
}

const FILE = 'session.json'

/** A directory that only this user can read, and that the runner empties at the end of each job. */
export function newDirectory(temporary: string): string {
  return mkdtempSync(join(temporary, 'mayfly-'))
}

/** Undefined once somebody has claimed it. */
export function readSession(directory: string): Session | undefined {
  try {
    return parseJson(readFileSync(join(directory, FILE), 'utf8')) as Session | undefined
  } catch {
    return undefined
  }
}

/** Throws if the directory was claimed: whoever claimed it does not know what is written now. */
export function writeSession(directory: string, session: Session): void {
  const path = join(directory, FILE)
  writeFileSync(`${path}.new`, JSON.stringify(session), { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Takes the session away from the process that beats: what it writes from now on fails. */
export function claimSession(directory: string): Session | undefined {
  const own = `${directory}-ended`
  try {
    renameSync(directory, own)
  } catch {
    return undefined
  }
  const session = readSession(own)
  rmSync(own, { recursive: true, force: true })
  return session
}

/** Logs in with a new token of GitHub whenever its access token ends. */
export function clientOf(env: Runner['env'], { server, audience }: Place, tokens: TokenCache): Client {
  return createClient({
    server,
    auth: { kind: 'identity', token: ({ signal }) => requestIdToken(env, audience, signal) },
    tokens,
    userAgent: 'mayfly-github-action',
  })
}

/** Keeps the access token in the session, for the post step. */
export function tokensIn(directory: string, { server }: Pick<Place, 'server'>): TokenCache {
  return {
    load: async () => readSession(directory)?.token,
    save: async (token) => {
      const session = readSession(directory)
      try {
        if (session === undefined) throw new Error('the session was claimed')
        writeSession(directory, { ...session, token })
      } catch (error) {
        // Nobody else would end this login.
        if (token !== undefined) await endLogin(server, token)
        throw error
      }
      // Its successor is on record, so that the end of this one does not end the agent.
      if (token !== undefined && session?.token !== undefined) await endLogin(server, session.token)
    },
  }
}

async function endLogin(server: string, { token }: AccessToken): Promise<void> {
  const client = createClient({ server, auth: { kind: 'bearer', token }, userAgent: 'mayfly-github-action' })
  await client.logOut({ signal: AbortSignal.timeout(5_000) }).catch(() => {})
}
