import { Link } from 'wouter'
import type { Operator } from '../../../../src/client/wire.ts'
import { useMe } from '../../api/me.ts'
import { paths } from '../../paths.ts'
import { Copy } from '../../ui/copy.tsx'
import { Fact, Facts } from '../../ui/facts.tsx'
import { visible } from '../../ui/hostile.ts'
import { Scopes } from '../../ui/scopes.tsx'
import { Status } from '../../ui/status.tsx'
import { Hostile } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'

/** What is known of an operator. One of single sign-on holds what their groups gave at the last login. */
export function PersonFacts({ person }: { readonly person: Operator }) {
  const isMe = useMe()?.id === person.id
  const { email, sso } = person
  const from = sso != null && <div className="text-xs text-muted">from the groups at the last login</div>
  return (
    <Facts>
      {email !== null && (
        <Fact name="E-mail">
          {visible(email)} <Copy text={email} what="the address" />
        </Fact>
      )}
      {sso != null && (
        <>
          <Fact name="Logs in with">{visible(sso.provider)} (single sign-on)</Fact>
          <Fact name="Issuer">
            <Hostile text={sso.issuer} most={120} />
          </Fact>
          <Fact name="Subject">
            <Hostile text={sso.subject} most={120} /> <Copy text={sso.subject} what="the subject" />
          </Fact>
        </>
      )}
      <Fact name="State">
        {person.joined_at === null ? <Status look="wait">invited</Status> : <Status look="ok">joined</Status>}
        {isMe && (
          <span className="text-muted">
            {' '}
            This is you:{' '}
            <Link className="text-accent underline" href={paths.account()}>
              your account
            </Link>
          </span>
        )}
      </Fact>
      <Fact name="Administers">
        <Scopes scopes={person.scopes} />
        {from}
      </Fact>
      <Fact name="May grant agents">
        <Scopes scopes={person.backend_scopes} />
        {from}
      </Fact>
      <Fact name="Last login">
        <Time at={person.last_login} />
      </Fact>
      {sso == null ? (
        <Fact name="Invited">
          <Time at={person.created_at} /> by <Hostile text={person.created_by} most={120} />
        </Fact>
      ) : (
        <Fact name="First login">
          <Time at={person.created_at} />
        </Fact>
      )}
      <Fact name="Id">
        <code>{person.id}</code> <Copy text={person.id} what="the id" />
      </Fact>
    </Facts>
  )
}
