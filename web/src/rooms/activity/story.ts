import type { AuditEntry } from '../../../../src/client/wire.ts'
import type { Look } from '../../ui/status.tsx'
import { duration } from '../../ui/times.ts'
import { actorOf, lookOf, wordsOf } from './words.ts'

/** One thing that happened to a credential. */
export interface Chapter {
  readonly id: string
  readonly at: string
  readonly look: Look
  readonly title: string
  /** What else is known, in a sentence. */
  readonly text: string
  /** The time since the one before, such as `10m`; empty for the first. */
  readonly after: string
}

/** Why nobody had to ask for an end. */
const REASONS: Readonly<Record<string, string>> = {
  agent_deleted: 'Its agent was deleted.',
  agent_expired: 'Its agent expired.',
  backend_deleted: 'Its backend was deleted.',
  run_ended: 'The run that it was made for ended.',
  interrupted: 'The server was interrupted while it was issued, so it was taken back.',
  undelivered: 'The agent had hung up before the answer, so nobody received it.',
  no_record: 'It was found at the upstream, and Mayfly did not know it.',
  found_upstream: 'It was found at the upstream, although it had ended.',
}

type Tell = (entry: AuditEntry) => { title: string; text?: string }

const by = (entry: AuditEntry) =>
  entry.actor === 'local' ? 'on the server’s own machine' : `by ${actorOf(entry)}`
const text = (entry: AuditEntry, name: string): string | undefined => {
  const value = entry.details?.[name]
  return typeof value === 'string' ? value : undefined
}
const from = ({ ip_address }: AuditEntry) => (ip_address === null ? '' : `From ${ip_address}. `)
const granted = ({ scopes, ttl }: AuditEntry) =>
  `${ttl === null ? '' : `For ${ttl}, `}${ttl === null ? 'With' : 'with'} ${scopes?.join(', ') || 'no scopes'}.`

const TELL: Readonly<Partial<Record<AuditEntry['action'], Tell>>> = {
  'credential.requested': (entry) => ({
    title: `Requested ${by(entry)}`,
    text: `${from(entry)}${granted(entry)}`,
  }),
  'credential.issued': (entry) => ({
    title: `Issued to ${entry.agent_name ?? actorOf(entry)} at ${entry.backend ?? 'a backend'}`,
    text: `${from(entry)}${granted(entry)}`,
  }),
  'credential.repeated': (entry) => ({
    title: 'Given again',
    text: `${from(entry)}The same request came once more, and had the same answer.`,
  }),
  'credential.issue_failed': (entry) => ({
    title: entry.outcome === 'denied' ? 'Refused' : 'Not issued: the upstream failed',
    text: text(entry, 'code') ?? '',
  }),
  'credential.revoked': (entry) => {
    const reason = text(entry, 'reason')
    const isAsked = reason === undefined || reason === 'revoked'
    return {
      title: isAsked ? `Revoked ${by(entry)}` : 'Revoked',
      text: isAsked ? from(entry).trim() : (REASONS[reason] ?? reason),
    }
  },
  'credential.expired': () => ({ title: 'Expired', text: 'Its time was over.' }),
  'credential.revoke_failed': ({ details }) => ({
    title:
      details?.['stuck'] === true
        ? `Stuck: the upstream has not ended it after ${details['attempts']} tries`
        : 'The upstream did not end it',
    text: `${details?.['code'] ?? 'no reason known'}. Mayfly goes on trying.`,
  }),
  'credential.settled': ({ details }) => ({
    title: 'Settled',
    text:
      details?.['recover'] === 'none'
        ? 'Nothing that can be found is left at the upstream.'
        : 'Nothing of it is left at the upstream.',
  }),
  'backend.tried': (entry) => ({
    title: `It was a trial of the backend, ${by(entry)}`,
    text: 'Nobody received its secret.',
  }),
}

/** The life of a credential, oldest first, from its entries in any order. */
export function storyOf(entries: readonly AuditEntry[]): readonly Chapter[] {
  const inOrder = [...entries].sort((one, other) => (one.id < other.id ? -1 : 1))
  return inOrder.map((entry, index) => {
    const before = inOrder[index - 1]
    const { title, text: more = '' } = TELL[entry.action]?.(entry) ?? {
      title: wordsOf(entry.action),
      text: '',
    }
    const passed =
      before === undefined ? 0 : (Date.parse(entry.timestamp) - Date.parse(before.timestamp)) / 1_000
    return {
      id: entry.id,
      at: entry.timestamp,
      look: lookOf(entry),
      title,
      text: more,
      after: passed < 1 ? '' : duration(passed),
    }
  })
}
