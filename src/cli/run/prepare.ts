import { aboutBackend } from '../../client/errors.ts'
import { Interrupted } from '../frame/surroundings.ts'
import type { Context } from '../frame/verb.ts'
import { whileWaiting } from '../frame/waiting.ts'
import { askKindVariables } from '../project-file/kind-variables.ts'
import type { RequestedCredential } from '../project-file/requested-credential.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { type Delivery, secretsOf, variablesFor, writeFiles } from './deliver.ts'
import type { Issuance } from './issued-credentials.ts'
import { type Redaction, SHORTEST_SECRET } from './redact.ts'
import { keepAlive } from './renew.ts'
import { type Obtained, withKindVariables } from './spread.ts'
import type { Preparation } from './supervise.ts'

export interface Delivered {
  readonly requested: readonly RequestedCredential[]
  /** The environment of the command before credentials are added. */
  readonly env: Context['env']
  readonly redaction?: Redaction | undefined
  /** Where another process has obtained what the command gets of each, and keeps it valid. */
  readonly obtained?: readonly Issuance[]
}

/**
 * Obtains the credentials, delivers them in variables and files, and renews the files until the command ends. Returns
 * the environment of the command.
 */
export async function deliverAll(
  context: Pick<Context, 'now' | 'out'>,
  {
    session,
    issued,
    openDirectory,
    onEnd,
    note,
  }: Pick<Preparation, 'session' | 'issued' | 'openDirectory' | 'onEnd' | 'note'>,
  { requested, env, redaction, obtained: given }: Delivered,
): Promise<Context['env']> {
  const hide = redaction === undefined ? () => {} : hideFrom(redaction, note)
  const place = async (delivery: Pick<Delivery, 'requested' | 'set'>, { credential }: Issuance) => {
    hide(delivery.requested.name, credential)
    return writeFiles(openDirectory, delivery, credential)
  }
  const obtain = (one: RequestedCredential, index: number) => given?.[index] ?? issued.obtain(one.request)
  const obtained = obtainAll(obtain, requested, session.client)
  const deliveries = withKindVariables(
    await whileWaiting(context, 'Waiting for credentials', obtained),
    env,
    note,
  )
  const variables: Record<string, string | undefined> = { ...env }
  for (const delivery of deliveries) {
    const { requested: one, issuance, spread } = delivery
    Object.assign(variables, variablesFor(one, issuance.credential, spread), await place(delivery, issuance))
  }
  if (given !== undefined) return variables
  const over = new AbortController()
  const kept = keepAlive(deliveries, { issued, now: context.now, note, place }, over.signal)
  onEnd(() => {
    over.abort(new Interrupted(0))
    return kept
  })
  return variables
}

/** Adds the secrets of a credential to the redaction, and reports once which of them cannot be redacted. */
function hideFrom(redaction: Redaction, note: Preparation['note']) {
  const reported = new Set<string>()
  return (name: string, credential: HeldCredential): void => {
    const short = secretsOf(credential).filter(([, secret]) => secret !== '' && !redaction.add(secret))
    for (const [field] of short) {
      const what = `${JSON.stringify(field.slice(0, 40))} of ${name}`
      if (!reported.has(what))
        note(`mayfly: --redact does not hide ${what}: it has fewer than ${SHORTEST_SECRET} characters.`)
      reported.add(what)
    }
  }
}

/** All of them, or the first error; credentials issued despite it are in `issued`. */
async function obtainAll(
  obtain: (one: RequestedCredential, index: number) => Issuance | Promise<Issuance>,
  requested: readonly RequestedCredential[],
  client: Preparation['session']['client'],
): Promise<Obtained[]> {
  const asking = Promise.allSettled(
    requested.map((one) => (one.isSpread ? askKindVariables(client, one.request.backend) : undefined)),
  )
  const results = await Promise.allSettled(
    requested.map(async (one, index) => ({
      requested: one,
      set: String(index),
      issuance: await obtain(one, index),
    })),
  )
  const kinds = await asking
  const of = (error: unknown, index: number) => {
    const backend = requested.length === 1 ? undefined : requested[index]?.request.backend
    return backend === undefined ? error : aboutBackend(error, backend)
  }
  return results.map((one, index) => {
    if (one.status === 'rejected') throw of(one.reason, index)
    const kind = kinds[index]
    if (kind?.status === 'rejected') throw of(kind.reason, index)
    return { ...one.value, kind: kind?.value }
  })
}
