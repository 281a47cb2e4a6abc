import { expect, test } from 'vitest'
import { ENTRY, loadIdentities } from '../../test/support/identity-config.ts'
import { identityWarnings } from './identity-warnings.ts'

async function warnings(over: object, ...more: object[]): Promise<string[]> {
  const entries = [{ ...ENTRY, ...over }, ...more.map((one) => ({ ...ENTRY, ...one }))]
  return identityWarnings(await loadIdentities({ identities: entries })).map(({ message }) => message)
}

test('an entry that pins numbers and events has none', async () => {
  expect(await warnings({})).toEqual([])
})

test.each([
  ['a token that would outlive its agent', { token_ttl: '2h' }, 'the access token ends with the agent'],
  ['an audience of AWS', { audience: 'sts.amazonaws.com' }, 'other services demand this one'],
  [
    'the default audience of GitHub',
    { audience: 'https://github.com/acme' },
    'other services demand this one',
  ],
  [
    'no event_name',
    { claims: { repository_id: '74' } },
    'pull_request, pull_request_target, workflow_run, issue_comment,',
  ],
  [
    'an event_name of forks',
    { claims: { repository_id: '74', event_name: { pattern: 'push|workflow_run' } } },
    'may run for workflow_run,',
  ],
  [
    'a subject without pull requests, and no event_name',
    {
      subject_pattern: undefined,
      subject: 'repo:acme/app:ref:refs/heads/main',
      claims: { repository_id: '1' },
    },
    'may run for pull_request_target, workflow_run, issue_comment,',
  ],
  [
    'names only',
    { subject_pattern: 'repo:acme/app:.+', claims: { event_name: 'push' } },
    'pin repository_id',
  ],
  [
    'all of an owner',
    { subject_pattern: 'repo:acme/.+', claims: { event_name: 'push' } },
    'every repository of acme',
  ],
  [
    'an enterprise server without numbers',
    {
      issuer: 'https://github.acme.example/_services/token',
      claims: { repository: 'acme/app', event_name: 'push' },
    },
    'pin repository_id',
  ],
  [
    'a project of GitLab on any branch',
    { issuer: 'https://gitlab.com', claims: { project_id: '1' } },
    'ref_protected: "true"',
  ],
  [
    'a service account without its uid',
    {
      issuer: 'https://k8s.example',
      subject_pattern: undefined,
      subject: 'system:serviceaccount:prod:shop',
      claims: undefined,
    },
    'pin kubernetes.io/serviceaccount/uid',
  ],
  [
    'a workspace in every phase',
    { issuer: 'https://app.terraform.io', claims: { terraform_workspace_id: 'ws-1' } },
    'pin terraform_run_phase',
  ],
  [
    'a project of CircleCI with SSH',
    {
      issuer: 'https://oidc.circleci.com/org/1',
      claims: { 'oidc.circleci.com/project-id': '1' },
    },
    'oidc.circleci.com/ssh-rerun: "false"',
  ],
])('warns of %s', async (_, over, message) => {
  expect((await warnings(over)).join('\n')).toContain(message)
})

test('warns of a fixed name that another entry can give', async () => {
  expect(await warnings({ agent: 'ci-main' }, { name: 'other' })).toEqual([
    'agent: the entry "other" can give this name, too; the first to log in has it',
  ])
})
