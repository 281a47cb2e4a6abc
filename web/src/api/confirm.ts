import { base64url } from './base64url.ts'

/** What the server wants before it carries out a request. */
export type Asked =
  | { readonly by: 'passkey'; readonly options: PublicKeyCredentialRequestOptionsJSON }
  | ({ readonly by: 'sso' } & AskedLogin)

/** Another login at the provider of single sign-on, for exactly this request. */
export interface AskedLogin {
  readonly provider: string
  readonly challenge: string
  /** The page of ours that leads to the provider. */
  readonly url: string
}

interface Refused {
  readonly error?: {
    readonly code?: string
    readonly options?: Partial<PublicKeyCredentialRequestOptionsJSON> & { readonly sso?: AskedLogin }
  }
}

/** What a route asks for; undefined for any other reply, and for a person who has nothing to confirm with. */
export function askedIn(text: string): Asked | undefined {
  const { error } = parse(text)
  if (error?.code !== 'confirmation_required') return undefined
  const { options } = error
  if (options?.sso !== undefined) return { by: 'sso', ...options.sso }
  return options?.challenge === undefined
    ? undefined
    : { by: 'passkey', options: options as PublicKeyCredentialRequestOptionsJSON }
}

function parse(text: string): Refused {
  try {
    return (JSON.parse(text) ?? {}) as Refused
  } catch {
    return {}
  }
}

/** The person confirms. Resolves with the header `Mayfly-Confirmation`; throws `NotAllowedError` when they decline. */
export async function confirmed(asked: Asked): Promise<string> {
  if (asked.by === 'passkey') return base64url(JSON.stringify(await signWithPasskey(asked.options)))
  const { challenge } = asked
  await logInAgain(asked)
  return base64url(JSON.stringify({ sso: { challenge } }))
}

async function signWithPasskey(options: PublicKeyCredentialRequestOptionsJSON): Promise<unknown> {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
  const answer = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential
  return answer.toJSON()
}

/** A request that waits until the person has logged in again in another tab. */
export interface Waiting extends AskedLogin {
  readonly confirm: () => void
  readonly cancel: () => void
}

let waiting: readonly Waiting[] = []
const listeners = new Set<() => void>()

function set(next: readonly Waiting[]): void {
  waiting = next
  for (const listener of listeners) listener()
}

/** Shows the dialog of `ui/log-in-again.tsx`, because only a click may open a tab. */
function logInAgain(asked: AskedLogin): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const cancel = () => reject(new NotConfirmed())
  const one: Waiting = { ...asked, confirm: resolve, cancel }
  set([...waiting, one])
  return promise.finally(() => set(waiting.filter((other) => other !== one)))
}

export class NotConfirmed extends Error {
  override readonly name = 'NotConfirmed'
}

/** For the one dialog that shows them, one after the other. */
export const firstWaiting = (): Waiting | undefined => waiting[0]
export function onWaiting(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
/** Nobody is logged in any more. */
export function cancelAll(): void {
  for (const { cancel } of waiting) cancel()
}

/** Tabs of this browser tell each other which challenge a person has answered at the provider. */
const CHANNEL = 'mayfly-confirmed'

export function tellConfirmed(challenge: string): void {
  const channel = new BroadcastChannel(CHANNEL)
  channel.postMessage({ challenge })
  channel.close()
}

export function onConfirmed(challenge: string, listener: () => void): () => void {
  const channel = new BroadcastChannel(CHANNEL)
  channel.onmessage = ({ data }: MessageEvent<{ readonly challenge?: unknown } | null>) => {
    if (data?.challenge === challenge) listener()
  }
  return () => channel.close()
}
