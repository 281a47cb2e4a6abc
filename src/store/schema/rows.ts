import type { COLUMNS, Table } from './columns.ts'

export type { Table } from './columns.ts'

type CellOf<C> = C extends { readonly type: 'text'; readonly nullable: infer N }
  ? N extends true
    ? string | null
    : string
  : C extends { readonly nullable: true }
    ? number | null
    : number

/** A row as the database stores it. */
type RowOf<C> = { -readonly [Name in keyof C]: CellOf<C[Name]> }

export type Tables = { [T in Table]: RowOf<(typeof COLUMNS)[T]> }

export type AgentRow = Tables['agents']
export type AgentGrantRow = Tables['agent_grants']
export type SigningKeyRow = Tables['signing_keys']
export type BackendRow = Tables['backends']
export type CredentialRow = Tables['credentials']
export type RunRow = Tables['runs']
export type IdempotencyRow = Tables['idempotency']
export type EnrollmentRow = Tables['enrollments']
export type IssuerKeyRow = Tables['issuer_keys']
export type ReceiverRow = Tables['receivers']
export type PluginRow = Tables['plugins']
export type OperatorRow = Tables['operators']
export type PasskeyRow = Tables['passkeys']
export type SessionRow = Tables['sessions']
export type LoginLinkRow = Tables['login_links']
export type ChallengeRow = Tables['challenges']
export type CommandLoginRow = Tables['command_logins']
export type ActivityRow = Tables['activity']
export type AuditRow = Tables['audit']
