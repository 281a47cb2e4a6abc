import { setTimeout as sleep } from 'node:timers/promises'
import { BackendError, misconfigured, unavailable } from '../../domain/backend-error.ts'
import { longestRotationMs } from '../../domain/limits.ts'
import type { Host, Rotation } from '../kind.ts'
import { type Config, PARTITIONS, partitionOf } from './config.ts'
import { type Answer, codeOf, type Fault, faultOf, partOf, postSigned, type Service } from './query.ts'
import { tryRole } from './sts.ts'

/** The state of the backend: the key that Mayfly made last, and when (epoch ms). */
interface Made {
  readonly id: string
  readonly at: number
}

/**
 * A user may have two access keys (IAM User Guide, "IAM and AWS STS quotas"), so both work in between. IAM makes the new one and
 * tells its secret once (IAM API Reference, "CreateAccessKey"), before Mayfly can store it. A key that was made in vain can be
 * told from one of a person only by its id, so its id is recorded first, and no other key is ever deleted. Undefined where
 * Mayfly logs in without a key.
 */
export function rotationOf(settings: Config, host: Host): Rotation | undefined {
  if (settings.access_key_id === undefined) return undefined
  const ask = (action: Action, signal: AbortSignal) => askIam(settings, host, action, signal)
  const deleteKey = async (id: string, signal: AbortSignal) => {
    const answer = await ask({ Action: 'DeleteAccessKey', AccessKeyId: id }, signal)
    if (!answer.ok && codeOf(answer) !== 'NoSuchEntity') throw refusalOf(answer)
  }
  return {
    async propose(signal) {
      const before = await host.state.read()
      const left = before === undefined ? undefined : (JSON.parse(before) as Made)
      if (left !== undefined && left.id !== settings.access_key_id) {
        requireOver(host, left)
        await deleteKey(left.id, signal)
      }
      const { id, secret } = await createKey(ask, settings, signal)
      let isRecorded = false
      try {
        isRecorded = await host.state.replace(before, JSON.stringify({ id, at: host.now() } satisfies Made))
      } finally {
        if (!isRecorded) await deleteKey(id, signal)
      }
      if (!isRecorded) throw unavailable(UNDER_WAY)
      return { access_key_id: id, secret_access_key: secret } satisfies Partial<Config>
    },
    adopt: (next, signal) => untilAccepted({ ...settings, ...next }, host, signal),
    finish: ({ access_key_id: id = '' }, signal) => deleteKey(id, signal),
  }
}

const UNDER_WAY = 'Another rotation of this access key began less than a minute ago; try again in a minute.'

/**
 * Another node may have made the key a moment ago and be about to use it. It has either stored that or given up after the longest
 * rotation; and we know of what it stored unless our own rotation began before.
 */
function requireOver({ now, timeoutMs }: Host, { at }: Made): void {
  if (now() - at < 2 * longestRotationMs(timeoutMs)) throw unavailable(UNDER_WAY)
}

type Action = Readonly<Record<'Action', string> & Partial<Record<'AccessKeyId', string>>>
type Ask = (action: Action, signal: AbortSignal) => Promise<Answer>

async function createKey(ask: Ask, { access_key_id: own }: Config, signal: AbortSignal) {
  const answer = await ask({ Action: 'CreateAccessKey' }, signal)
  if (codeOf(answer) === 'LimitExceeded') throw await noRoom(ask, own, signal)
  if (!answer.ok) throw refusalOf(answer)
  const id = partOf(answer.text, 'AccessKeyId')
  const secret = partOf(answer.text, 'SecretAccessKey')
  if (!id || !secret) throw unavailable('The reply is not one of AWS IAM.')
  return { id, secret }
}

/** IAM API Reference, "ListAccessKeys": without a name, of the user who signs. */
async function noRoom(ask: Ask, own: string | undefined, signal: AbortSignal): Promise<BackendError> {
  const answer = await ask({ Action: 'ListAccessKeys' }, signal)
  if (!answer.ok) return refusalOf(answer)
  const ids = [...answer.text.matchAll(/<AccessKeyId>(\w{16,128})</g)].map(([, id]) => id)
  const other = ids.find((id) => id !== own) ?? '…'
  const user = /<UserName>([\w+=,.@-]{1,128})</.exec(answer.text)?.[1] ?? '…'
  const message =
    `IAM permits two access keys, and the user "${user}" has another one, ${other}. It may be a person's, or left by a rotation ` +
    'that was interrupted; Mayfly deletes only what it is certain to have made. If nobody uses that key, delete it with ' +
    `"aws iam delete-access-key --user-name ${user} --access-key-id ${other}", then rotate again.`
  return misconfigured(message)
}

const PAUSE_MS = 300
const TIMES = 3

/**
 * A new key is known everywhere only after some seconds (IAM User Guide, "Troubleshoot IAM", "Changes that I make are not always
 * immediately visible"), and until then to some servers of STS: so it must be accepted several times in a row. This asks for what
 * the core tries next, a session of the role: Ceph does not offer GetCallerIdentity.
 */
async function untilAccepted(settings: Config, host: Host, signal: AbortSignal): Promise<void> {
  for (let accepted = 0; accepted < TIMES; ) {
    const isAccepted = await tryRole(settings, host, signal).then(
      () => true,
      (error: unknown) => {
        if (error instanceof BackendError && error.fault === 'denied') return false
        throw error
      },
    )
    accepted = isAccepted ? accepted + 1 : 0
    if (accepted === TIMES) return
    await sleep(PAUSE_MS, undefined, { signal }).catch((cause: unknown) => {
      throw new BackendError('timeout', 'AWS does not accept the new access key yet.', { cause })
    })
  }
}

function askIam(settings: Config, host: Host, action: Action, signal: AbortSignal): Promise<Answer> {
  return postSigned(
    settings,
    host,
    iamOf(settings),
    new URLSearchParams({ Version: '2010-05-08', ...action }),
    signal,
  )
}

/** Where `endpoint` names the STS of another system, it has the IAM, too. */
function iamOf(settings: Config): Service {
  const service = 'iam'
  if (settings.endpoint !== undefined) return { url: settings.endpoint, service, region: settings.region }
  const [host, region] = PARTITIONS[partitionOf(settings)]?.iam ?? []
  if (host === undefined || region === undefined)
    throw misconfigured('Mayfly does not know the address of IAM in this partition.')
  return { url: `https://${host}/`, service, region }
}

const FAULTS: readonly Fault[] = [
  [
    /^AccessDenied/,
    'denied',
    'IAM does not let the user of the access key replace it: it needs iam:CreateAccessKey, iam:DeleteAccessKey and iam:ListAccessKeys on itself.',
  ],
  [
    /^(InvalidAction|MethodNotAllowed|NotImplemented)/,
    'misconfigured',
    'The address in "endpoint" does not offer to replace access keys.',
  ],
]

const refusalOf = (answer: Answer) => faultOf(answer, 'AWS IAM', FAULTS)
