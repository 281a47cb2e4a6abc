import { isSameText } from '../same-text.ts'
import { encodeRequest } from './requests.ts'

export interface Login {
  readonly username: string
  readonly password: string
  readonly placeholder: string
}

/** Requests that change who a connection is. */
export const isWatched = (name: string) => /^(?:auth|hello|reset)$/i.test(name)

/** What the server gets for a wrong password: it answers as it does, in the turn of the request. */
const WRONG = 'wrong'
/** After `RESET` a connection is the default user, who may do other things. No server knows this one, and its error shows the name. */
const NO_RESET = 'MAYFLY-REFUSES-RESET-OPEN-A-NEW-CONNECTION'

/** The password that a request names. */
export function passwordIn(parts: readonly Buffer[]): Buffer | undefined {
  const at = passwordAt(parts)
  return at === undefined ? undefined : parts[at]
}

/** `AUTH [user] password`, `HELLO [version [AUTH user password] [SETNAME name]]`. */
function passwordAt(parts: readonly Buffer[]): number | undefined {
  if (nameOf(parts) === 'auth') return parts.length === 2 || parts.length === 3 ? parts.length - 1 : undefined
  if (nameOf(parts) !== 'hello') return undefined
  for (let at = 2; at < parts.length; at += 1) {
    const option = parts[at]?.toString('latin1').toLowerCase()
    if (option === 'auth' && at + 2 < parts.length) return at + 2
    if (option === 'setname') at += 1
  }
  return undefined
}

export const nameOf = (parts: readonly Buffer[]) => parts[0]?.toString('latin1').toLowerCase() ?? ''

/** The request for the server: the issued login in place of the placeholder, which never goes on. */
export function translate(parts: readonly Buffer[], { username, password, placeholder }: Login): Buffer {
  if (nameOf(parts) === 'reset') return encodeRequest([NO_RESET])
  const at = passwordAt(parts)
  const clean = parts.map((part) => (part.includes(placeholder) ? WRONG : part))
  if (at === undefined) return encodeRequest(clean)
  const isRight = isSameText(parts[at] ?? '', placeholder)
  const login = [username, isRight ? password : WRONG]
  const hasUser = nameOf(parts) === 'hello' || parts.length === 3
  return encodeRequest([...clean.slice(0, hasUser ? at - 1 : at), ...login, ...clean.slice(at + 1)])
}
