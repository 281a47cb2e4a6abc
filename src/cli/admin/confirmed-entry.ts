import type { Client } from '../../client/client.ts'
import type { AuditEntry } from '../../client/wire.ts'
import { isObject, parseJson } from '../../domain/formats/json.ts'
import { hexOf, isId } from '../../domain/ids.ts'
import type { Confirmation, PasskeyConfirmation, SsoConfirmation } from '../../domain/people/confirmation.ts'
import { CliError, usage } from '../frame/failure.ts'
import { listing } from '../frame/output.ts'
import type { Context } from '../frame/verb.ts'
import { openAdminClient } from '../session/admin.ts'
import { confirmationIn, faultOf } from './verify-confirmation.ts'

/** Checks one entry, and shows what was confirmed. Throws `CliError` where it does not hold. */
export async function verifyEntry(context: Context, id: string | undefined): Promise<void> {
  if (id === undefined) throw usage('Name the entry: `mayfly audit verify-confirmation aud_…`.')
  if (!isId('audit', id)) throw usage('An entry is named by its id: aud_ and 26 characters.')
  const client = await openAdminClient(context)
  const entry = await findEntry(client, id)
  const kept = confirmationIn(entry?.details)
  if (entry === undefined) throw new CliError('not_found', 'There is no such entry.')
  if (kept === undefined)
    throw new CliError('not_confirmed', 'This entry has no confirmation.', {
      hint: 'Only what an operator had to confirm in the console has one.',
    })
  const fault = faultOf(kept, Date.parse(entry.timestamp)) ?? (await ownerFault(client, entry, kept))
  if (fault !== undefined) throw new CliError('not_confirmed', `This is not confirmed: ${fault}.`)
  const request = parseJson(kept.request)
  const { method, path, body, time } = isObject(request) ? request : {}
  const shown = {
    confirmed: true,
    entry: entry.id,
    action: entry.action,
    actor: entry.actor,
    operator_id: String(entry.details?.['actor_id']),
    ...('sso' in kept ? { sso: kept.sso } : { passkey_id: kept.passkeyId }),
    request,
  }
  await context.out.show(shown, () =>
    listing({
      ...proofOf(kept),
      operator: `${shown.actor} (${shown.operator_id})`,
      time: String(time),
      request: `${String(method)} ${String(path)}`,
      body: body === null ? undefined : JSON.stringify(body),
    }),
  )
}

/** A passkey signs the request; of a login at a provider there is only what the server wrote down. */
function proofOf(kept: Confirmation): Record<string, string> {
  if (!('sso' in kept))
    return {
      confirmed: 'yes, by a passkey of this operator, and exactly this request',
      passkey: kept.passkeyId,
    }
  const { issuer, subject, authTime } = kept.sso
  return {
    confirmed: 'yes, by another login of this operator, for exactly this request',
    provider: issuer,
    subject,
    'logged in': new Date(authTime * 1_000).toISOString(),
    proof:
      'the server checked the id token, and kept no copy: unlike the signature of a passkey, this cannot be checked without trusting the server',
  }
}

/** By its time, which the id begins with. */
async function findEntry(client: Client, id: string): Promise<AuditEntry | undefined> {
  const at = new Date(Number.parseInt(hexOf('audit', id).slice(0, 12), 16)).toISOString()
  for await (const entry of client.admin.audit({ since: at, until: at })) if (entry.id === id) return entry
  return undefined
}

/** The audit itself says whose passkey it is: not the table of passkeys, which forgets those that were removed. */
async function ownerFault(
  client: Client,
  entry: AuditEntry,
  kept: Confirmation,
): Promise<string | undefined> {
  return 'sso' in kept ? personFault(client, entry, kept) : passkeyFault(client, entry, kept)
}

/** The audit has every login, with who the person is at their provider. */
async function personFault(
  client: Client,
  { actor, details }: AuditEntry,
  { sso }: SsoConfirmation,
): Promise<string | undefined> {
  for await (const started of client.admin.audit({ action: 'session.started', actor })) {
    const { operator_id: owner, issuer, subject } = started.details ?? {}
    if (owner !== details?.['actor_id'] || typeof issuer !== 'string') continue
    return issuer === sso.issuer && subject === sso.subject ? undefined : 'somebody else logged in for it'
  }
  return 'the audit has no login of this operator by single sign-on'
}

async function passkeyFault(
  client: Client,
  { actor, details }: AuditEntry,
  kept: PasskeyConfirmation,
): Promise<string | undefined> {
  for await (const added of client.admin.audit({ action: 'passkey.added', actor })) {
    const { passkey_id: id, operator_id: owner, public_key: key } = added.details ?? {}
    if (id !== kept.passkeyId) continue
    return owner === details?.['actor_id'] && key === kept.publicKey
      ? undefined
      : 'the passkey was registered for somebody else, or has another key'
  }
  return 'the audit has no entry of this operator that registers the passkey'
}
