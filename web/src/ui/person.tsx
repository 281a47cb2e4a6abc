import type { Operator } from '../../../src/client/wire.ts'

interface Person {
  readonly email?: string | null
  readonly sso?: Operator['sso']
}

/** How people are told apart: by their address, or as their provider of single sign-on knows them. */
export function whoOf({ email, sso }: Person): string {
  return email ?? (sso == null ? '' : `${sso.issuer} / ${sso.subject}`)
}

/** The provider that a person logs in with. */
export function Provider({ name }: { readonly name: string }) {
  return (
    <span
      title={`Logs in with ${name} (single sign-on)`}
      className="max-w-24 shrink-0 truncate rounded-sm border border-line px-1.5 text-xs leading-5 text-muted"
    >
      {name}
      <span className="sr-only"> (single sign-on)</span>
    </span>
  )
}
