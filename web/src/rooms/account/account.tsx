import { Link } from 'wouter'
import { useMe } from '../../api/me.ts'
import { paths } from '../../paths.ts'
import { logOut } from '../../shell/log-out.ts'
import { Button } from '../../ui/button.tsx'
import { prefer, preferenceOf } from '../../ui/density.ts'
import { Fact, Facts, Section } from '../../ui/facts.tsx'
import { Field, Select } from '../../ui/fields.tsx'
import { visible } from '../../ui/hostile.ts'
import { Page, Sheet } from '../../ui/page.tsx'
import { whoOf } from '../../ui/person.tsx'
import { Scopes } from '../../ui/scopes.tsx'
import { Hostile } from '../../ui/text.tsx'
import { Life } from '../../ui/time.tsx'
import { Passkeys } from './passkeys.tsx'
import { Sessions } from './sessions.tsx'

/** Who I am, my passkeys, my sessions, and how the console looks. */
export function Account() {
  const me = useMe()
  if (me?.id === undefined) return null
  return (
    <Page title="My account" actions={<Button onClick={() => void logOut()}>Log out</Button>}>
      <Sheet>
        <Facts>
          <Fact name="Name">
            <Hostile text={me.name ?? ''} most={128} /> (<Hostile text={whoOf(me)} most={254} />)
          </Fact>
          {me.sso != null && <Fact name="Logs in with">{visible(me.sso.provider)} (single sign-on)</Fact>}
          <Fact name="Admin scopes">
            <Scopes scopes={me.scopes} />
          </Fact>
          <Fact name="May grant agents">
            <Scopes scopes={me.backend_scopes ?? []} />
          </Fact>
          {me.session !== undefined && (
            <Fact name="This session">
              <Life
                from={new Date(Date.parse(me.session.expires_at) - 12 * 3_600_000).toISOString()}
                until={me.session.expires_at}
              />
            </Fact>
          )}
        </Facts>
        {me.sso == null && (
          <Passkeys operatorId={me.id} mayRegister={me.session?.may_register_until ?? null} />
        )}
        <Sessions operatorId={me.id} isMine />
        <Looks />
        <p className="text-xs text-muted">
          Other people are under{' '}
          <Link className="text-accent underline" href={paths.people()}>
            People
          </Link>
          .
        </p>
      </Sheet>
    </Page>
  )
}

function Looks() {
  return (
    <Section title="Looks, in this browser" isOfPage>
      <div className="grid max-w-[520px] gap-4 sm:grid-cols-2">
        <Field label="Colours">
          {(control) => (
            <Select
              {...control}
              defaultValue={preferenceOf('theme')}
              onChange={({ target }) => prefer('theme', target.value)}
            >
              <option value="">As the system</option>
              <option value="light">Light</option>
              <option value="dark">Dark</option>
            </Select>
          )}
        </Field>
        <Field label="Rows of lists">
          {(control) => (
            <Select
              {...control}
              defaultValue={preferenceOf('density')}
              onChange={({ target }) => prefer('density', target.value)}
            >
              <option value="">Roomy</option>
              <option value="dense">Dense</option>
            </Select>
          )}
        </Field>
      </div>
    </Section>
  )
}
