import { isObject, parseJson } from '../../domain/formats/json.ts'
import { SSO_STATE_MS } from '../../domain/limits.ts'
import { newNonce, sha256 } from '../../keys/webauthn.ts'
import type { Core } from '../context.ts'

/** A login under way at a provider, in the cookie of the browser that began it: so any node can finish it. */
export interface SsoState {
  readonly provider: string
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  /** For a confirmation: the session that asks for it. The nonce is then its challenge. */
  readonly sessionId: string | null
  readonly expiresAt: number
}

type Parts = Pick<Core, 'sealer' | 'store'>

/** `challenge`: what the login confirms, in this session. */
export function newState(
  { store }: Parts,
  provider: string,
  confirms?: { readonly challenge: string; readonly sessionId: string },
): SsoState {
  return {
    provider,
    state: newNonce(),
    nonce: confirms?.challenge ?? newNonce(),
    verifier: newNonce(),
    sessionId: confirms?.sessionId ?? null,
    expiresAt: store.now() + SSO_STATE_MS,
  }
}

const PLACE = ['sso', 'login', 'state'] as const

export const sealState = ({ sealer }: Parts, state: SsoState): string =>
  sealer.seal(...PLACE, JSON.stringify(state))

/** Undefined for a cookie that this server did not make, or that is too old. */
export function openState({ sealer, store }: Parts, cookie: string): SsoState | undefined {
  let text: string
  try {
    text = sealer.open(...PLACE, cookie)
  } catch {
    return undefined
  }
  const state = parseJson(text)
  if (!isObject(state) || !((state['expiresAt'] as number) > store.now())) return undefined
  return state as unknown as SsoState
}

/** Uses it up, on all nodes. False when it was used before. */
export async function useState({ store }: Parts, { state, expiresAt }: SsoState): Promise<boolean> {
  const outcome = await store.commit([store.tokens.useProof(`sso|${sha256(state)}`, expiresAt)])
  return outcome.done
}
