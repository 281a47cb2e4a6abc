import type { Surroundings } from '../frame/surroundings.ts'
import { withoutLogin } from '../run/child-environment.ts'

/** SDKs prefer these to an endpoint or a token file, so they must go. */
const BEFORE_OURS = new Set([
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'AWS_CREDENTIAL_EXPIRATION',
  'AWS_PROFILE',
  'AWS_DEFAULT_PROFILE',
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'AWS_ROLE_ARN',
  'AWS_ROLE_SESSION_NAME',
  'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
  'AWS_CONTAINER_AUTHORIZATION_TOKEN',
  'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE',
])

/** Our environment without our login, and with `added` in place of other sources of AWS credentials. */
export function childEnvironment(
  env: Surroundings['env'],
  added: Readonly<Record<string, string>>,
  keepsLogin: boolean,
): Record<string, string | undefined> {
  const kept = Object.entries(withoutLogin(env, keepsLogin)).filter(([name]) => !BEFORE_OURS.has(name))
  return { ...Object.fromEntries(kept), ...added }
}
