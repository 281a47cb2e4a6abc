import type { Client } from '../../client/client.ts'
import { shellWord } from '../../domain/formats/shell-word.ts'
import type { EnrollmentAnswer } from '../enroll/sealed-answer.ts'
import { begin, dropOwn, findPresent, findTarget, lockEnrollment } from '../enroll/start.ts'
import {
  isFinal,
  isSubmitted,
  removeUnderway,
  type Submitted,
  saveUnderway,
  submit,
  type Underway,
} from '../enroll/underway.ts'
import { EnrollmentEnded, explained, look, wait } from '../enroll/wait.ts'
import { readAssignments } from '../frame/assignments.ts'
import { readDuration } from '../frame/duration.ts'
import { CliError, failureOf, usage } from '../frame/failure.ts'
import { globalFlags } from '../frame/global-flags.ts'
import { flag, many, off, text, type ValuesOf } from '../frame/options.ts'
import { listing } from '../frame/output.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { settleIssuer } from '../session/issuer.ts'
import { keepLogin, noteOtherLogin } from '../session/keep-login.ts'
import { askServerKeys, clientFor } from '../session/open.ts'
import { DEFAULT_SERVER } from '../session/server-address.ts'
import { rememberServerKeys } from '../session/server-keys.ts'
import type { Target } from '../session/session.ts'

const OPTIONS = {
  name: text('<name>', 'name of the agent; prompted for if omitted'),
  scope: many('<scope>', 'request this scope, such as shop-db:shop:read; may be repeated'),
  metadata: many('<name=text>', 'shown to the administrator; may be repeated'),
  noWait: off('submit and exit; run the command again to collect the answer'),
  timeout: text('<duration>', 'wait no longer; the enrollment remains, as with --no-wait'),
  issuer: text('<url>', 'what the server calls itself, if that is not its address; prompted for if omitted'),
  restart: flag('drop an enrollment under way and start a new one'),
}

type Options = ValuesOf<typeof OPTIONS>

export const verb = defineVerb({
  description:
    'Enrolls this user as an agent: creates a key, sends its public half, waits until an administrator approves it, ' +
    'and stores the login. The private half never leaves this machine. After an interruption, run the command again ' +
    'to continue.',
  options: OPTIONS,
  examples: {
    'mayfly enroll --server https://mayfly.example.com --name reviewer --scope demo':
      'ask and wait for approval',
    'mayfly enroll': 'continue after an interruption',
    'mayfly enroll --name ci-42 --timeout 5m': 'in a job that must not wait for hours',
    'mayfly enroll --name ci-42 --json': 'in a script, approved by a policy',
  },
  json: '{status: approved, agent: {id, name}, scopes, server, profile, kept_in: keychain or file, place (for a new login)}; with --no-wait, while undecided, {status: pending, enrollment_id, fingerprint, approve, server, profile, expires_at}',
  exits: [3, 4, 5],
  run: async (context, options) => {
    const patienceMs = await readPatience(options)
    const target = await findTarget(context)
    const unlock = await lockEnrollment(context, target.profileName)
    try {
      await enroll(context, { ...options, patienceMs }, target)
    } finally {
      unlock()
    }
  },
})

async function enroll(
  context: Context,
  options: Options & { readonly patienceMs: number | undefined },
  target: Target,
): Promise<void> {
  const { profileName } = target
  const metadata = readAssignments(options.metadata, '--metadata')
  const asked = { name: options.name, scopes: options.scope, metadata }
  const present = await findPresent(context, target, options.name)
  if (present !== undefined) {
    const { agent, scopes, place } = present
    await dropOwn(context, profileName, present)
    if (await rememberServerKeys(context, target, await askServerKeys(context, target)))
      context.out.note(
        'The keys of the server are others than at your login; the new ones are now remembered.',
      )
    const value = { status: 'approved', agent, scopes, ...placeOf(target), kept_in: place }
    return context.out.report(value, `Already enrolled as the agent ${agent.name}.`)
  }
  if (options.restart === true) await removeUnderway(context, profileName)
  const underway = await begin(context, target, asked)
  const client = await clientFor(context, target, { kind: 'none' })
  try {
    const agreed = await agreeOnIssuer(context, target, client, underway, options.issuer)
    const { issuer } = agreed
    const submitted = isSubmitted(agreed) ? agreed : await submit(context, client, profileName, agreed)
    await collect(
      context,
      target,
      client,
      { ...submitted, issuer },
      options.wait === false ? 0 : options.patienceMs,
    )
  } catch (error) {
    if (error instanceof EnrollmentEnded) await removeUnderway(context, profileName)
    if (context.signal.aborted) context.out.note(`To continue: ${again(context)}`)
    throw await explained(context, client, error)
  }
}

/** Before anything is sent: a proof for an issuer is good wherever that issuer is. */
async function agreeOnIssuer<T extends Underway>(
  context: Context,
  target: Target,
  client: Client,
  underway: T,
  named: string | undefined,
): Promise<T & { issuer: string }> {
  const { issuer: announced } = await client.discovery().catch(async (error: unknown) => {
    if (!isSubmitted(underway) && isFinal(error)) await removeUnderway(context, target.profileName)
    throw error
  })
  const given = named ?? underway.issuer
  const issuer = await settleIssuer(context, target, { announced, given, command: 'mayfly enroll' })
  const agreed = { ...underway, issuer }
  if (underway.issuer !== issuer) await saveUnderway(context, target.profileName, agreed)
  return agreed
}

/** Collects the answer and stores the login; with a patience of 0, only if the answer is there. */
async function collect(
  context: Context,
  target: Target,
  client: Client,
  submitted: Submitted & { issuer: string },
  patienceMs = Number.POSITIVE_INFINITY,
): Promise<void> {
  const { issuer } = submitted
  const answer =
    patienceMs === 0
      ? await look(context, client, issuer, submitted)
      : await wait(context, client, issuer, submitted, {
          announce: () => announce(context, target, submitted),
          until: context.now() + patienceMs,
          next: `Once it is approved, run: ${again(context)}`,
        })
  if (answer === undefined) await leave(context, target, submitted)
  else await keep(context, target, submitted, { answer, issuer })
}

const LONGEST_PATIENCE_MS = 7 * 86_400_000

async function readPatience({ timeout, wait: isWaiting }: Options): Promise<number | undefined> {
  if (timeout === undefined) return undefined
  if (isWaiting === false) throw usage('--timeout and --no-wait exclude each other.')
  return readDuration('--timeout', timeout, LONGEST_PATIENCE_MS)
}

/** The enrolled key is all a login needs, so the token and the secret in the answer are discarded. */
async function keep(
  context: Context,
  target: Target,
  { private_jwk, request }: Submitted,
  { answer, issuer }: { answer: EnrollmentAnswer; issuer: string },
): Promise<void> {
  const agent = { id: answer.agent_id, name: answer.agent_name ?? request.name }
  const secret = { kind: 'private_key_jwt', client_id: answer.oidc.client_id, private_jwk } as const
  // Nothing may keep an approved login from being stored.
  const serverKeys = await askServerKeys(context, target).catch(() => [])
  const kept = await keepLogin(context, { target, secret, agent, issuer, serverKeys }).catch((cause) => {
    const { message } = failureOf(cause)
    const why = `${message[0]?.toLowerCase()}${message.slice(1)}`
    throw new CliError('login_not_kept', `The enrollment is approved, but ${why}`, {
      hint: 'Fix that and run `mayfly enroll` again within ten minutes: nothing is lost.',
      cause,
    })
  })
  await removeUnderway(context, target.profileName)
  const scopes = answer.scopes.join(', ') || 'no scopes'
  await context.out.report(
    {
      status: 'approved',
      agent,
      scopes: answer.scopes,
      ...placeOf({ ...target, profileName: kept.profileName }),
      kept_in: kept.place,
      place: kept.title,
    },
    `Enrolled as the agent ${agent.name}, with ${scopes}. Its key is stored in ${kept.title}.`,
  )
  await noteOtherLogin(context, target, kept)
}

/** Tells the administrator how to compare and approve the request. */
function announce(context: Context, target: Target, { enrollment, fingerprint, request }: Submitted): void {
  context.out.note(`Waiting for an administrator to approve the agent ${request.name}.`)
  context.out.note(
    listing({
      enrollment: enrollment.id,
      'key fingerprint': fingerprint,
      'to approve, run': approval(target, enrollment.id),
    }),
  )
}

/** Names the server only if an administrator on the same machine would not find it by default. */
function approval({ server }: Target, id: string): string {
  const isUnusual = server.isLocal && server.text !== DEFAULT_SERVER
  const where = isUnusual ? ` --server ${shellWord(server.text)}` : ''
  return `mayfly approve ${shellWord(id)}${where}`
}

async function leave(context: Context, target: Target, submitted: Submitted): Promise<void> {
  if (!context.out.isJson) announce(context, target, submitted)
  const { id, expires_at } = submitted.enrollment
  await context.out.report(
    {
      status: 'pending',
      enrollment_id: id,
      fingerprint: submitted.fingerprint,
      approve: approval(target, id),
      ...placeOf(target),
      expires_at,
    },
    `Once it is approved, run: ${again(context)}`,
  )
}

/** The server and its authorities are stored with an enrollment under way; its profile leads to them. */
const again = ({ globals }: Context) => `mayfly enroll${globalFlags(globals)}`

const placeOf = ({ server, profileName }: Target) => ({ server: server.text, profile: profileName })
