import { Link } from 'wouter'
import type { Explanation, PendingEnrollment } from '../../../../src/client/wire.ts'
import { useMe } from '../../api/me.ts'
import { useRead } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { Fact, Facts, Section } from '../../ui/facts.tsx'
import { ErrorNote } from '../../ui/notes.tsx'
import { Scopes } from '../../ui/scopes.tsx'
import { Hostile } from '../../ui/text.tsx'

/** What the policies say about an enrollment that waits; undefined for anything else, and for those who may not ask. */
export function useExplanation(row: PendingEnrollment | undefined) {
  const mayAsk = useMe()?.operations.includes('explainPolicy') === true
  const isAsked = row?.type === 'enroll' && row.status === 'pending' && mayAsk
  const scope = row === undefined || row.scopes.length === 0 ? undefined : row.scopes
  return useRead(
    'GET /v1/admin/policies/explain',
    { query: { name: row?.name, scope } },
    { enabled: isAsked },
  )
}

interface Props {
  readonly row: PendingEnrollment
  readonly explanation: Explanation | undefined
  readonly error: unknown
}

/** Why it waits, and what the policy for its name would give. */
export function PolicyView({ row, explanation, error }: Props) {
  if (row.note === undefined && explanation === undefined && error == null) return null
  return (
    <Section title="What the policies say">
      {error != null && <ErrorNote error={error} />}
      <Facts>
        {row.note !== undefined && (
          <Fact name={row.status === 'pending' ? 'Why it waits' : 'Noted'}>
            <Hostile text={row.note} />
          </Fact>
        )}
        {explanation !== undefined && (
          <>
            <Fact name="Policy">
              {explanation.policy === null ? (
                'None is for this name.'
              ) : (
                <Link className="text-accent underline" href={paths.policy(explanation.policy)}>
                  {explanation.policy}
                </Link>
              )}
            </Fact>
            {explanation.reason !== null && explanation.reason !== row.note && (
              <Fact name="Today">
                <Hostile text={explanation.reason} />
              </Fact>
            )}
            {explanation.decision === 'approve' && (
              <Fact name="Today">
                It would be approved at once, with <Scopes scopes={explanation.scopes} />
              </Fact>
            )}
            {explanation.expires_in !== null && (
              <Fact name="It would live">{explanation.expires_in} at most</Fact>
            )}
          </>
        )}
      </Facts>
    </Section>
  )
}
