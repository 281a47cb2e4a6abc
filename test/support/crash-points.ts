import type { CrashPoint } from './crash-at-commit.ts'
import { CREATES_ROLE } from './fault-world.ts'
import type { Tripwire } from './tripwire-proxy.ts'

/** Where the server is killed: at a message to the upstream, at a message to a PostgreSQL store, or inside the process. */
export type Point = { upstream: Tripwire } | { store: Tripwire } | { process: CrashPoint }
/** The state of the stored credential once recovery has finished. */
export type Left = 'nothing' | 'interrupted' | 'active' | 'ended'

const before = (...sees: string[]): Point[] => [
  { process: { at: 'before', sees } },
  { store: { at: 'arrival', sees } },
]
const after = (...sees: string[]): Point[] => [
  { process: { at: 'after', sees } },
  { store: { at: 'answered', sees } },
]
const upstreamAt = (at: Tripwire['at'], ...sees: string[]): Point[] => [{ upstream: { at, sees } }]
const reply = (request: string): Point[] => [{ process: { at: 'reply', sees: [request] } }]
type Table = readonly [what: string, points: Point[], left: Left][]

/** Each row uses its first point that fits the store. `{id}` and `{role}` stand for the credential under test. */
const ISSUING: Table = [
  ['before the intent', before('credential.requested'), 'nothing'],
  ['after the intent', after('credential.requested'), 'interrupted'],
  ['during the upstream call', upstreamAt('answered', CREATES_ROLE), 'interrupted'],
  ['before the upstream commits', upstreamAt('arrival', CREATES_ROLE, 'COMMIT'), 'interrupted'],
  ['after the upstream call', upstreamAt('answered', CREATES_ROLE, 'COMMIT'), 'interrupted'],
  ['before the commit', before('credential.issued', 'COMMIT'), 'interrupted'],
  ['after the commit', after('credential.issued', 'COMMIT'), 'active'],
  ['before the reply', reply('POST /api/v1/credentials'), 'active'],
]

/** The crash points of an issue at which the role exists upstream. */
export const WITH_ROLE = new Set([
  'after the upstream call',
  'before the commit',
  'after the commit',
  'before the reply',
])

const REVOKING: Table = [
  ['before the commit', before('credential.revoked', '{id}', 'COMMIT'), 'active'],
  ['after the commit', after('credential.revoked', '{id}', 'COMMIT'), 'ended'],
  ['during the upstream call', upstreamAt('answered', '{role}', 'COMMIT'), 'ended'],
  ['after the upstream call', upstreamAt('answered', '{role}', 'COMMIT', '{role}', 'COMMIT'), 'ended'],
  ['before the record is settled', before('credential.settled', '{id}', 'COMMIT'), 'ended'],
  ['after the record is settled', after('credential.settled', '{id}', 'COMMIT'), 'ended'],
  ['before the reply', reply('DELETE /api/v1/credentials'), 'ended'],
]

const DELETING: Table = [
  ['before the commit', before('agent.deleted', 'COMMIT'), 'active'],
  ['after the commit', after('agent.deleted', 'COMMIT'), 'ended'],
]

const EXPIRING: Table = [
  ['before the commit', before('credential.expired', '{id}', 'COMMIT'), 'ended'],
  ['after the commit', after('credential.expired', '{id}', 'COMMIT'), 'ended'],
  ['during the upstream call', upstreamAt('answered', '{role}', 'COMMIT'), 'ended'],
]

export const TABLES = { issuing: ISSUING, revoking: REVOKING, deleting: DELETING, expiring: EXPIRING }

type Names = Readonly<Record<keyof typeof TABLES, readonly string[]>>

/** Where a short run kills the server: with each kind of point, and with each state that a kill leaves, at least once. */
export const SAMPLE: Readonly<Record<'sqlite' | 'postgres' | 'plugin', Names>> = {
  sqlite: {
    issuing: [
      'before the intent',
      'after the intent',
      'before the upstream commits',
      'after the upstream call',
      'before the commit',
      'before the reply',
    ],
    revoking: ['before the commit', 'after the commit', 'after the upstream call'],
    deleting: ['after the commit'],
    expiring: ['after the commit'],
  },
  postgres: {
    issuing: ['after the intent', 'before the commit'],
    revoking: ['after the commit'],
    deleting: [],
    expiring: [],
  },
  plugin: {
    issuing: ['after the upstream call'],
    revoking: ['during the upstream call'],
    deleting: [],
    expiring: [],
  },
}
