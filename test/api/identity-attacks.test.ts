import { describe, expect, test } from 'vitest'
import {
  type Attack,
  of,
  present,
  refuses,
  signers,
  tenant,
  useAttackedServer,
} from '../support/identity-attacks.ts'
import { AUDIENCE } from '../support/preset-tokens.ts'

/** Hostile tokens of trusted issuers: each is refused, the audit has the reason, and the reply never does. */
useAttackedServer()

describe('what these entries are for', () => {
  test.each<[string, () => string]>([
    ['a workflow', of('github')],
    [
      'a workflow whose sub is in the form before July 2026',
      of('github', { sub: 'repo:octo-org/octo-repo:environment:prod' }),
    ],
    ['a pipeline', of('gitlab')],
    ['a pipeline at its own issuer', of('gitlab', tenant(), {}, signers.tenants)],
    ['a pod', of('kubernetes')],
    ['a workload of SPIFFE', of('spiffe')],
    ['a machine', of('google')],
    ['a role', of('aws')],
  ])('logs in: %s', async (_, make) => {
    const { status, text } = await present(make())
    expect([status, text]).toEqual([200, expect.stringContaining('access_token')])
  })
})

describe('another repository', () => {
  refuses([
    [
      'with the name of one that was deleted',
      of('github', { repository_id: '9001' }),
      'claim',
      'github: claims.repository_id',
    ],
    [
      'and owner with the names of ones that were deleted',
      of('github', { repository_id: '9001', repository_owner_id: '9000' }),
      'claim',
      'github: claims.repository_id',
    ],
    [
      'of the same owner',
      of('github', { repository: 'octo-org/evil', repository_id: '75' }),
      'claim',
      'github: claims.repository_id',
    ],
    [
      'of another owner with the same number there',
      of('github', { repository_owner_id: '66' }),
      'claim',
      'github: claims.repository_owner_id',
    ],
    [
      'with a list of numbers',
      of('github', { repository_id: ['74'] }),
      'claim',
      'github: claims.repository_id',
    ],
    [
      'with a number that only looks the same',
      of('github', { repository_id: '74 ' }),
      'claim',
      'github: claims.repository_id',
    ],
    [
      'with a number with zeros',
      of('github', { repository_id: '074' }),
      'claim',
      'github: claims.repository_id',
    ],
    [
      'with a number with a fraction',
      of('github', { repository_id: 74.5 }),
      'claim',
      'github: claims.repository_id',
    ],
    [
      'with an object',
      of('github', { repository_id: { toString: '74' } }),
      'claim',
      'github: claims.repository_id',
    ],
    ['with null', of('github', { repository_id: null }), 'claim', 'github: claims.repository_id'],
    [
      'with a customised sub that says the name',
      of('github', { sub: 'repository_id:74', repository_id: '75' }),
      'claim',
      'github: claims.repository_id',
    ],
    [
      'whose group begins with the group of ours',
      gitlabSub('project_path:my-group/my-project-evil:ref_type:branch:ref:main'),
      'subject',
      'gitlab: subject_pattern',
    ],
    [
      'whose subject ends as ours does',
      gitlabSub('x:project_path:my-group/my-project:ref_type:branch:ref:main'),
      'subject',
      'gitlab: subject_pattern',
    ],
    [
      'with our subject in a second line',
      gitlabSub('x\nproject_path:my-group/my-project:ref_type:branch:ref:main'),
      'malformed',
    ],
    [
      'for which a star in the entry is no pattern',
      of('gitlab', tenant({ sub: 'project_path:acme/evil:ref_type:branch:ref:main' }), {}, signers.tenants),
      'subject',
      'tenants: subject',
    ],
  ])
})

function gitlabSub(sub: string): () => string {
  return of('gitlab', { sub })
}

describe('code of a fork', () => {
  refuses([
    ...['pull_request', 'pull_request_target', 'workflow_run', 'issue_comment'].map(
      (event): Attack => [
        `in an event ${event}`,
        of('github', { event_name: event }),
        'claim',
        'github: claims.event_name',
      ],
    ),
    [
      'in a pull request, whose sub says so',
      of('github', {
        sub: 'repo:octo-org/octo-repo:pull_request',
        event_name: 'pull_request',
        environment: undefined,
      }),
      'claim',
      'github: claims.environment',
    ],
    [
      'in an event that only begins with one of ours',
      of('github', { event_name: 'push_target' }),
      'claim',
      'github: claims.event_name',
    ],
    [
      'in a pipeline of a merge request, where project_id is the fork',
      of('gitlab', { project_id: '21', job_project_id: '20' }),
      'claim',
      'gitlab: claims.project_id',
    ],
  ])
})

describe('another place of the same repository', () => {
  refuses([
    [
      'without an environment',
      of('github', { environment: undefined }),
      'claim',
      'github: claims.environment',
    ],
    ['with an empty environment', of('github', { environment: '' }), 'claim', 'github: claims.environment'],
    [
      'in another environment',
      of('github', { environment: 'prod-eu' }),
      'claim',
      'github: claims.environment',
    ],
    [
      'in an environment with other capitals',
      of('github', { environment: 'Prod' }),
      'claim',
      'github: claims.environment',
    ],
    [
      'on a branch that is not protected',
      of('gitlab', { ref_protected: 'false' }),
      'claim',
      'gitlab: claims.ref_protected',
    ],
    [
      'on a branch whose protection is no text and no boolean',
      of('gitlab', { ref_protected: ['true'] }),
      'claim',
      'gitlab: claims.ref_protected',
    ],
    [
      'with an escaped colon in the ref',
      gitlabSub('project_path:my-group/my-project:ref_type:branch:ref:main%3Aprod'),
      'subject',
      'gitlab: subject_pattern',
    ],
    [
      'with a tag',
      gitlabSub('project_path:my-group/my-project:ref_type:tag:ref:main'),
      'subject',
      'gitlab: subject_pattern',
    ],
  ])
})

describe('a token for somebody else', () => {
  refuses([
    [
      'the audience that GitHub gives by itself',
      of('github', { aud: 'https://github.com/octo-org' }),
      'audience',
      'github: audience',
    ],
    [
      'a list with ours second',
      of('github', { aud: ['https://other.test', AUDIENCE] }),
      'audience',
      'github: audience',
    ],
    [
      'a list with ours first',
      of('github', { aud: [AUDIENCE, 'https://other.test'] }),
      'audience',
      'github: audience',
    ],
    ['our audience with a slash', of('github', { aud: `${AUDIENCE}/` }), 'audience', 'github: audience'],
    ['no audience', of('github', { aud: undefined }), 'audience', 'github: audience'],
    [
      'the audience of an API, as AWS and Azure give',
      of('aws', { aud: 'sts.amazonaws.com' }),
      'audience',
      'roles: audience',
    ],
  ])
})

describe('the token of a person, from the same issuer', () => {
  const person = { sub: '110169484474386276334', email: 'alice@example.com', google: undefined }
  refuses([
    [
      'for an application',
      of('google', { ...person, aud: 'client.apps.googleusercontent.com' }),
      'audience',
      'machines: audience',
    ],
    [
      'for this server',
      of('google', person),
      'claim',
      'machines: claims.google/compute_engine/project_number',
    ],
    [
      'with the claims of a machine as a text',
      of('google', { ...person, google: '{"compute_engine":{}}' }),
      'claim',
      'machines: claims.google/compute_engine/project_number',
    ],
    ['of a user of Kubernetes', of('kubernetes', { sub: 'system:admin' }), 'subject', 'pods: subject'],
    [
      'of a role session',
      of('aws', { sub: 'arn:aws:sts::123456789012:assumed-role/DataProcessingRole/alice' }),
      'subject',
      'roles: subject',
    ],
    ['of a logout', of('google', {}, { typ: 'logout+jwt' }), 'malformed'],
  ])
})

describe('a value that would be another name', () => {
  refuses(
    ['*', 'a+b', '../etc', 'a/b', 'a b', 'a\u00a0b', '', '..'].map(
      (value): Attack => [JSON.stringify(value), of('github', { run_id: value }), 'value'],
    ),
  )
})
