import { useRead } from './queries.ts'

/** Who is logged in, and what they may do. The server checks each request again: this only decides what is offered. */
export function useMe() {
  return useRead('GET /v1/admin/me').data
}

/**
 * Why an act is not offered, for `Button refused`: undefined if the caller may do it. `operation`: an `operationId` of the interface.
 * What may not be done is shown disabled with its reason, never hidden.
 */
export function useRefusal(operation: string): string | undefined {
  const me = useMe()
  if (me === undefined || me.operations.includes(operation)) return undefined
  return 'Your scopes do not include this.'
}

/** How the caller confirms an act, as the last sentence of what a dialog says. */
export function useConfirming(): string {
  const provider = useMe()?.sso?.provider
  return provider === undefined
    ? 'You confirm with your passkey.'
    : `You confirm by logging in again at ${provider}.`
}
