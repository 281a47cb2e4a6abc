import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { CliError, EXIT } from '../../cli/frame/failure.ts'
import { text } from '../../cli/frame/options.ts'
import { table } from '../../cli/frame/output.ts'
import { type Context, defineVerb } from '../../cli/frame/verb.ts'
import { isObject } from '../../domain/formats/json.ts'
import {
  type Claims,
  type Identity,
  IdentityRefused,
  type Platform,
  type Trusted,
} from '../../domain/identity/identity.ts'
import {
  audienceMatches,
  failedCondition,
  isSubject,
  issuerMatches,
  readClaim,
  type TokenFacts,
} from '../../domain/identity/match.ts'
import { expandAgentName } from '../../domain/identity/template.ts'
import { readDate } from '../../domain/identity/times.ts'
import { FOREIGN_AGE_MS, FOREIGN_TOLERANCE_MS, MAX_FOREIGN_JWT_BYTES } from '../../domain/limits.ts'
import { fileFault } from '../../files/read-secret.ts'
import { fileOf, noteFaults } from '../config-file.ts'
import { issuerOf, readTrustedFile } from './read.ts'

/** How one entry takes the token. */
interface Judged {
  readonly entry: string
  readonly list: 'identities' | 'platforms'
  readonly matches: boolean
  /** The agent that it would become. */
  readonly agent: string | null
  /** The first condition that failed, by its place in the entry, and what both sides have. */
  readonly condition: string | null
  readonly wanted: string | null
  readonly token: string | null
}

export const verb = defineVerb({
  description:
    'Shows which entry of a configuration file takes a token, and of each other entry the first condition that failed. It reads the token without checking its signature and whether it was used before: only the server does that. The token is not sent anywhere.',
  options: {
    tokenFile: text('<file>', 'file with the token, a JWT'),
    config: text('<file>', 'the configuration file of the server [env: MAYFLY_CONFIG]'),
  },
  examples: {
    'mayfly identity test --token-file token.jwt --config mayfly.yaml': 'why a job may not log in',
  },
  json: '{"verified": false, "issuer", "subject", "taken_by", "entries": [{"entry", "list", "matches", "agent", "condition", "wanted", "token"}], "warnings"}',
  run: async (context, { tokenFile, config }) => {
    const { out } = context
    if (tokenFile === undefined)
      throw new CliError('usage', 'Give the token with --token-file.', { exit: EXIT.usage })
    const { trusted, faults } = await readTrustedFile(context, fileOf(context, config))
    noteFaults(context, faults)
    if (trusted === undefined) return EXIT.failed
    const token = await readToken(context, tokenFile)
    const entries = judgeToken(trusted, token, context.now())
    const matching = entries.filter(({ matches }) => matches)
    const warnings = [
      'The signature is not checked, nor whether the token was used before.',
      ...(matching.length > 1 ? ['Several entries match: the server refuses the token.'] : []),
    ]
    const [only] = matching
    const takenBy = matching.length === 1 ? (only?.entry ?? null) : null
    await out.show(
      {
        verified: false,
        issuer: token.issuer ?? null,
        subject: token.subject,
        taken_by: takenBy,
        entries,
        warnings,
      },
      () =>
        table(
          ['ENTRY', '', 'CONDITION', 'WANTED', 'TOKEN'],
          entries.map((one) => [
            one.entry,
            one.matches ? 'matches' : 'does not match',
            one.condition ?? `agent ${one.agent ?? ''}`,
            one.wanted ?? '',
            one.token ?? (one.matches ? '' : '(none)'),
          ]),
        ),
    )
    if (!out.isJson) for (const warning of warnings) out.note(warning)
    return takenBy === null ? EXIT.failed : EXIT.done
  },
})

/** Holds the token against all entries, the issuer first and the times last. `now`: epoch ms. */
export function judgeToken(trusted: Trusted, token: TokenFacts, now: number): Judged[] {
  return [
    ...trusted.identities.map((entry) => judgeIdentity(entry, token, now)),
    ...trusted.platforms.map((entry) => judgePlatform(entry, token, now)),
  ]
}

type Failed = Pick<Judged, 'condition' | 'wanted' | 'token'>

function judgeIdentity(entry: Identity, token: TokenFacts, now: number): Judged {
  const failed = failedOf(entry, token, now)
  const named = failed === undefined ? nameOf(entry, token.claims) : failed
  const about = { entry: entry.name, list: 'identities' } as const
  if (typeof named !== 'string') return { ...about, matches: false, agent: null, ...named }
  return { ...about, matches: true, agent: named, condition: null, wanted: null, token: null }
}

function failedOf(entry: Identity, token: TokenFacts, now: number): Failed | undefined {
  const { claims } = token
  if (!issuerMatches(entry.issuer, token)) {
    const condition = { issuer: 'issuer', pattern: 'issuer_pattern', trust_domain: 'trust_domain' }[
      entry.issuer.kind
    ]
    const its = entry.issuer.kind === 'trust_domain' ? token.subject : token.issuer
    return { condition, wanted: issuerOf(entry), token: its ?? null }
  }
  const failed = failedCondition(entry, token)
  if (failed === undefined)
    return (
      failedTime(claims, entry.maxAgeMs, entry.issuer.kind === 'trust_domain', now) ??
      failedPod(entry, claims)
    )
  const { condition } = failed
  if (condition === 'audience') return { condition, wanted: entry.audience, token: shown(claims['aud']) }
  if (condition.startsWith('subject')) return { condition, wanted: entry.subject.text, token: token.subject }
  const name = condition.slice('claims.'.length)
  const rule = entry.claims.find(({ claim }) => claim === name)
  return { condition, wanted: rule?.text ?? null, token: readClaim(claims, name) ?? null }
}

/** As the server does (`domain/identity/times.ts`), with the first condition that fails: a token of a trust domain may lack `iat`. */
function failedTime(
  claims: Claims,
  maxAgeMs: number,
  mayLackIssuedAt: boolean,
  now: number,
): Failed | undefined {
  const text = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())
  const [expires, issued, begins] = [claims['exp'], claims['iat'], claims['nbf']].map(readDate)
  const failed = (condition: string, wanted: string, at: number | undefined) => ({
    condition,
    wanted,
    token: text(at),
  })
  if (expires === undefined || expires + FOREIGN_TOLERANCE_MS <= now)
    return failed('exp', `later than ${text(now)}`, expires)
  const latest = now + FOREIGN_TOLERANCE_MS
  // A time that is no date is refused, too.
  if (begins === undefined ? claims['nbf'] !== undefined : begins > latest)
    return failed('nbf', `before ${text(now)}`, begins)
  if (issued !== undefined && issued > latest) return failed('iat', `before ${text(now)}`, issued)
  if (claims['iat'] === undefined && mayLackIssuedAt)
    return expires > now + maxAgeMs
      ? failed('max_age', `exp before ${text(now + maxAgeMs)}`, expires)
      : undefined
  return issued === undefined || now - issued > maxAgeMs
    ? failed('max_age', `issued after ${text(now - maxAgeMs)}`, issued)
    : undefined
}

function nameOf({ agent }: Identity, claims: Claims): string | Failed {
  try {
    return expandAgentName(agent, claims).name
  } catch (error) {
    if (!(error instanceof IdentityRefused)) throw error
    return { condition: 'agent', wanted: agent.text, token: error.detail ?? null }
  }
}

/** Tokens of Kubernetes that are bound to no pod, such as those in secrets, are refused. */
function failedPod({ claims: rules }: Identity, claims: Claims): Failed | undefined {
  if (!rules.some(({ claim }) => claim.startsWith('kubernetes.io/'))) return undefined
  const own = claims['kubernetes.io']
  return isObject(own) && Object.hasOwn(own, 'pod')
    ? undefined
    : { condition: 'kubernetes.io/pod', wanted: 'the pod of the token', token: null }
}

const failedId = ({ jti }: Claims): Failed | undefined =>
  typeof jti === 'string' && jti !== ''
    ? undefined
    : { condition: 'jti', wanted: 'an id of the token', token: null }

function judgePlatform(entry: Platform, token: TokenFacts, now: number): Judged {
  const { claims } = token
  const failed: Failed | undefined =
    token.issuer !== entry.issuer
      ? { condition: 'issuer', wanted: entry.issuer, token: token.issuer ?? null }
      : !audienceMatches(entry, claims['aud'])
        ? { condition: 'audience', wanted: entry.audience, token: shown(claims['aud']) }
        : isSubject(token.subject)
          ? (failedTime(claims, FOREIGN_AGE_MS, false, now) ?? failedId(claims))
          : { condition: 'subject', wanted: 'a subject of 1 to 255 characters', token: token.subject }
  const about = { entry: entry.name, list: 'platforms' } as const
  if (failed !== undefined) return { ...about, matches: false, agent: null, ...failed }
  return { ...about, matches: true, agent: `${entry.name}-…`, condition: null, wanted: null, token: null }
}

const shown = (value: unknown): string | null =>
  value === undefined ? null : typeof value === 'string' ? value : JSON.stringify(value)

async function readToken({ cwd }: Context, file: string): Promise<TokenFacts> {
  const fault = (message: string, cause?: unknown) => new CliError('invalid_token', message, { cause })
  let content: string
  try {
    content = (await readFile(resolve(cwd, file), 'utf8')).trim()
  } catch (error) {
    throw fault(`The file ${file} ${fileFault(error)}.`, error)
  }
  if (content.length > MAX_FOREIGN_JWT_BYTES)
    throw fault(`The token in ${file} is longer than ${MAX_FOREIGN_JWT_BYTES} bytes.`)
  const [, payload] = /^[\w-]+\.([\w-]+)\.[\w-]*$/.exec(content) ?? []
  if (payload === undefined) throw fault(`The file ${file} holds no JWT: three parts with dots between them.`)
  let claims: unknown
  try {
    claims = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'))
  } catch (error) {
    throw fault(`The second part of the token in ${file} is not JSON.`, error)
  }
  if (!isObject(claims)) throw fault(`The second part of the token in ${file} is not an object.`)
  const { iss, sub } = claims as { iss?: unknown; sub?: unknown }
  return {
    issuer: typeof iss === 'string' ? iss : undefined,
    subject: typeof sub === 'string' ? sub : '',
    claims: claims as Claims,
  }
}
