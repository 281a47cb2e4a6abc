import type { ChangeAgent, CreateAgent } from '../../../../src/client/wire.ts'
import { word } from '../../ui/word.ts'

const flags = (name: string, values: readonly string[] = []) => values.map((one) => `--${name} ${word(one)}`)
const flag = (name: string, value: string | null | undefined) =>
  value == null || value === '' ? [] : [`--${name} ${word(value)}`]

/** `mayfly agent create …`, as the form stands. */
export function commandOf({ name, scopes, expires_in, audiences, description }: CreateAgent): string {
  return [
    `mayfly agent create ${name === '' ? 'NAME' : word(name)}`,
    ...flags('scope', scopes),
    ...flag('expires-in', expires_in),
    ...flags('audience', audiences),
    ...flag('description', description),
  ].join(' ')
}

/** `mayfly agent update …`, as the form stands. */
export function updateOf(name: string, changes: ChangeAgent): string {
  return [
    `mayfly agent update ${word(name)}`,
    ...flags('add-scope', changes.add_scopes),
    ...flags('remove-scope', changes.remove_scopes),
    ...flag('expires-in', changes.expires_in),
    ...(changes.expires_at === null ? ['--no-expiry'] : []),
    ...(changes.audiences?.length === 0 ? ['--no-audiences'] : flags('audience', changes.audiences)),
    ...(changes.description === undefined ? [] : [`--description ${word(changes.description ?? '')}`]),
    ...(changes.revoke === true ? ['--revoke'] : []),
  ].join(' ')
}
