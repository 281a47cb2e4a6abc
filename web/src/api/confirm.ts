import { base64url } from './base64url.ts'

interface Refused {
  readonly error?: { readonly code?: string; readonly options?: PublicKeyCredentialRequestOptionsJSON }
}

/** The challenge of a route that asks for the passkey once more; undefined for any other reply, and for a person without passkeys. */
export function challengeOf(text: string): PublicKeyCredentialRequestOptionsJSON | undefined {
  const { error } = parse(text)
  return error?.code === 'confirmation_required' && error.options?.challenge !== undefined
    ? error.options
    : undefined
}

function parse(text: string): Refused {
  try {
    return (JSON.parse(text) ?? {}) as Refused
  } catch {
    return {}
  }
}

/** Asks for the passkey. Resolves with the header `Mayfly-Confirmation`; throws `NotAllowedError` when the person declines. */
export async function signChallenge(options: PublicKeyCredentialRequestOptionsJSON): Promise<string> {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
  const answer = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential
  return base64url(JSON.stringify(answer.toJSON()))
}
