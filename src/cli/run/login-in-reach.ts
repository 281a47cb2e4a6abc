import { oneLine } from '../frame/terminal-text.ts'
import type { Context } from '../frame/verb.ts'
import type { Session } from '../session/open.ts'

/** Where a process of the same user finds the login that this one used. */
const PLACES = {
  environment: 'in the environment of this process',
  keychain: 'in the keychain',
  file: 'in a file of this user',
  identity: 'where this machine or job has its identity from',
} as const

/** Says once that the command could log in itself, if it looked for it. */
export async function warnOfLogin(
  context: Pick<Context, 'env'>,
  { login }: Session,
  note: (text: string) => void,
): Promise<void> {
  if (login === undefined) return
  const place = context.env['MAYFLY_TOKEN_FILE'] ?? context.env['MAYFLY_CLIENT_SECRET_FILE']
  const isGone = login.from === 'environment' && place !== undefined && !(await canRead(place))
  if (isGone) return
  note(
    oneLine(
      `mayfly: the command runs as the same user as the proxy, and could read the login of mayfly ${PLACES[login.from]}. docs/guides/proxy.md shows setups where it cannot.`,
    ),
  )
}

async function canRead(path: string): Promise<boolean> {
  const { access, constants } = await import('node:fs/promises')
  return access(path, constants.R_OK).then(
    () => true,
    () => false,
  )
}
