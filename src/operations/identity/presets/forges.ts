import { asName, type ClaimLine, type Given, NOT_PARSED, onePerJob, type Preset } from './preset.ts'

/** The events at which those decide what runs who may write to the repository. */
export const OWN_EVENTS = [
  'push',
  'schedule',
  'workflow_dispatch',
  'repository_dispatch',
  'release',
  'deployment',
  'merge_group',
]

function eventClaim({ event = OWN_EVENTS }: Given): ClaimLine {
  const why =
    'pull_request, pull_request_target, workflow_run and issue_comment are left out: no claim says that the code or the text of a fork decides what such a job does.'
  const [only = ''] = event
  return event.length === 1
    ? { claim: 'event_name', value: only, why }
    : { claim: 'event_name', value: event.join('|'), isPattern: true, why }
}

const repositoryClaims = (given: (key: 'repositoryId' | 'ownerId') => string, all: Given): ClaimLine[] => [
  {
    claim: 'repository_id',
    value: given('repositoryId'),
    why: 'Numbers are never given to somebody else; names are, after a repository or an owner was renamed or deleted.',
  },
  { claim: 'repository_owner_id', value: given('ownerId') },
  eventClaim(all),
]

const github: Preset = {
  name: 'github',
  summary: 'jobs of GitHub Actions, also of an enterprise (--issuer)',
  source: 'https://docs.github.com/en/actions/reference/security/oidc',
  needs: ['repositoryId', 'ownerId'],
  takes: ['repository', 'event', 'issuer'],
  use: 'The workflow needs `permissions: id-token: write`.',
  entry: (given, all) => ({
    about: asName(all.repository ?? given('repositoryId')),
    lines: [
      { key: 'issuer', value: all.issuer ?? 'https://token.actions.githubusercontent.com' },
      NOT_PARSED,
    ],
    claims: repositoryClaims(given, all),
    agentSuffix: '-{run_id}',
  }),
}

/** Its tokens have the numbers since https://codeberg.org/forgejo/forgejo/pulls/12355. */
const forgejo: Preset = {
  name: 'forgejo',
  summary: 'jobs of Forgejo Actions; the issuer is https://HOST/api/actions',
  source: 'https://forgejo.org/docs/next/user/actions/security-openid-connect',
  needs: ['issuer', 'repositoryId', 'ownerId'],
  takes: ['repository', 'event', 'caFile'],
  use: 'The job needs `enable-openid-connect: true`. Versions of Forgejo that sign no numbers are refused.',
  entry: (given, all) => ({
    about: asName(all.repository ?? given('repositoryId')),
    lines: [{ key: 'issuer', value: given('issuer') }, NOT_PARSED],
    claims: repositoryClaims(given, all),
    agentSuffix: '-{run_id}',
  }),
}

const gitlab: Preset = {
  name: 'gitlab',
  summary: 'jobs of GitLab on protected branches and tags, also of your own instance (--issuer)',
  source: 'https://docs.gitlab.com/ci/secrets/id_token_authentication',
  needs: ['projectId', 'namespaceId'],
  takes: ['issuer', 'caFile'],
  use: 'The job asks for the token with `id_tokens:` and this audience.',
  entry: (given, all) => ({
    about: `project-${given('projectId')}`,
    lines: [{ key: 'issuer', value: all.issuer ?? 'https://gitlab.com' }, NOT_PARSED],
    claims: [
      {
        claim: 'project_id',
        value: given('projectId'),
        why: 'Numbers are never given to somebody else; paths are. In the merge request of a fork it is that of the fork.',
      },
      { claim: 'namespace_id', value: given('namespaceId') },
      {
        claim: 'ref_protected',
        value: 'true',
        why: 'Otherwise every branch is taken, also one that nobody reviewed.',
      },
    ],
    agentSuffix: '-{job_id}',
    last: onePerJob('1h', 'GitLab makes one token for a job, before it begins.'),
  }),
}

export const FORGES = [github, gitlab, forgejo]
