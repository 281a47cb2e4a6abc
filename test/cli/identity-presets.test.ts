import { generateKeyPairSync } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { newHome, runCli } from './support.ts'

const AUDIENCE = 'https://mayfly.example.com'
const REPOSITORY = ['--repository', 'octo-org/octo-repo', '--repository-id', '74', '--owner-id', '65']
const UUID = '0184990a-477b-4fa8-9968-496074483cee'

/** Claims as the vendors' pages have them; `hostile`: what differs, and the condition that must fail. */
interface Case {
  readonly argv: readonly string[]
  readonly claims: Readonly<Record<string, unknown>>
  readonly agent: string
  readonly hostile: readonly (readonly [string, Readonly<Record<string, unknown>>, string])[]
}

const GITHUB = {
  iss: 'https://token.actions.githubusercontent.com',
  sub: 'repo:octo-org@65/octo-repo@74:ref:refs/heads/main',
  actor: 'octocat',
  actor_id: '12',
  base_ref: '',
  event_name: 'push',
  ref: 'refs/heads/main',
  ref_type: 'branch',
  repository: 'octo-org/octo-repo',
  repository_id: '74',
  repository_owner: 'octo-org',
  repository_owner_id: '65',
  repository_visibility: 'private',
  run_id: '5001',
  run_attempt: '1',
  runner_environment: 'github-hosted',
  job_workflow_ref: 'octo-org/octo-repo/.github/workflows/deploy.yml@refs/heads/main',
}
const events = [
  'pull_request',
  'pull_request_target',
  'workflow_run',
  'issue_comment',
  'push_x',
  'xpush',
].map((event_name) => [event_name, { event_name }, 'claims.event_name'] as const)
const KUBERNETES = {
  iss: 'https://k8s.example.com',
  sub: 'system:serviceaccount:prod:shop',
  'kubernetes.io': {
    namespace: 'prod',
    pod: { name: 'shop-7d', uid: UUID },
    serviceaccount: { name: 'shop', uid: 'u-1' },
  },
}
const kubernetes = (over: object) => ({ 'kubernetes.io': { ...KUBERNETES['kubernetes.io'], ...over } })

const CASES: Record<string, Case> = {
  github: {
    argv: ['github', ...REPOSITORY],
    claims: GITHUB,
    agent: 'github-octo-org-octo-repo-5001',
    hostile: [
      ...events,
      ['a name that was taken over', { repository_id: '75' }, 'claims.repository_id'],
      ['an owner that was taken over', { repository_owner_id: '66' }, 'claims.repository_owner_id'],
      ['an enterprise server', { iss: 'https://github.acme.example/_services/token' }, 'issuer'],
      ['an enterprise of its own', { iss: `${GITHUB.iss}/acme` }, 'issuer'],
      ['the twin with a slash', { iss: `${GITHUB.iss}/` }, 'issuer'],
      ['the audience of another service', { aud: 'sts.amazonaws.com' }, 'audience'],
      ['two audiences', { aud: ['other', AUDIENCE] }, 'audience'],
      ['a run that is a path', { run_id: '../admin' }, 'agent'],
    ],
  },
  'github of an enterprise, one event': {
    argv: [
      'github',
      ...REPOSITORY,
      '--issuer',
      `${GITHUB.iss}/acme`,
      '--event',
      'pull_request',
      '--agent',
      'pr-{run_id}',
    ],
    claims: {
      ...GITHUB,
      iss: `${GITHUB.iss}/acme`,
      sub: 'repo:octo-org/octo-repo:pull_request',
      event_name: 'pull_request',
    },
    agent: 'pr-5001',
    hostile: [['push', { event_name: 'push' }, 'claims.event_name']],
  },
  forgejo: {
    argv: ['forgejo', ...REPOSITORY, '--issuer', 'https://forge.example/api/actions'],
    claims: {
      ...GITHUB,
      iss: 'https://forge.example/api/actions',
      sub: 'repo:octo-org-65/octo-repo-74:ref:refs/heads/main',
    },
    agent: 'forgejo-octo-org-octo-repo-5001',
    hostile: [...events, ['another repository', { repository_id: '7' }, 'claims.repository_id']],
  },
  gitlab: {
    argv: ['gitlab', '--project-id', '20', '--namespace-id', '72'],
    claims: {
      iss: 'https://gitlab.com',
      sub: 'project_path:my-group/my-project:ref_type:branch:ref:main',
      namespace_id: '72',
      namespace_path: 'my-group',
      project_id: '20',
      project_path: 'my-group/my-project',
      pipeline_id: '574',
      pipeline_source: 'push',
      job_id: '302',
      ref: 'main',
      ref_type: 'branch',
      ref_path: 'refs/heads/main',
      ref_protected: 'true',
      runner_id: 1,
      runner_environment: 'self-hosted',
    },
    agent: 'gitlab-project-20-302',
    hostile: [
      ['a fork', { project_id: '21' }, 'claims.project_id'],
      ['a branch that is not protected', { ref_protected: 'false' }, 'claims.ref_protected'],
      ['another instance', { iss: 'https://gitlab.example.com' }, 'issuer'],
    ],
  },
  buildkite: {
    argv: ['buildkite', '--organization-id', UUID, '--pipeline-id', 'abcdef12-477b-4fa8-9968-496074483cee'],
    claims: {
      iss: 'https://agent.buildkite.com',
      sub: 'organization:acme-inc:pipeline:super-duper-app:ref:refs/heads/main:commit:9f3182061f1e2cca4702c368cbc039b7dc9d4485:step:build',
      organization_id: UUID,
      pipeline_id: 'abcdef12-477b-4fa8-9968-496074483cee',
      organization_slug: 'acme-inc',
      pipeline_slug: 'super-duper-app',
      build_number: 1,
      build_branch: 'main',
      build_tag: null,
      job_id: '0184990a-477b-4fa8-9968-000000000001',
    },
    agent: 'buildkite-pipeline-abcdef12-0184990a-477b-4fa8-9968-000000000001',
    hostile: [
      ['a token without the ids', { organization_id: undefined }, 'claims.organization_id'],
      ['another pipeline', { pipeline_id: UUID }, 'claims.pipeline_id'],
    ],
  },
  circleci: {
    argv: ['circleci', '--organization-id', UUID, '--project-id', '76543210-ba98-fedc-3210-edcba0987654'],
    claims: {
      iss: `https://oidc.circleci.com/org/${UUID}`,
      sub: `org/${UUID}/project/76543210-ba98-fedc-3210-edcba0987654/user/${UUID}`,
      'oidc.circleci.com/project-id': '76543210-ba98-fedc-3210-edcba0987654',
      'oidc.circleci.com/context-ids': [],
      'oidc.circleci.com/ssh-rerun': false,
      'oidc.circleci.com/vcs-ref': 'refs/heads/main',
    },
    agent: 'circleci-project-76543210',
    hostile: [
      [
        'a job that somebody debugs',
        { 'oidc.circleci.com/ssh-rerun': true },
        'claims.oidc.circleci.com/ssh-rerun',
      ],
      ['another project', { 'oidc.circleci.com/project-id': UUID }, 'claims.oidc.circleci.com/project-id'],
      ['the audience that all tokens have', { aud: UUID }, 'audience'],
    ],
  },
  'terraform-cloud': {
    argv: [
      'terraform-cloud',
      '--organization-id',
      'org-GRNbCjYNpBB6NEBH',
      '--workspace-id',
      'ws-mbsd5E3Ktt5Rg2Xm',
    ],
    claims: {
      iss: 'https://app.terraform.io',
      sub: 'organization:my-org:project:Default Project:workspace:my-workspace:run_phase:apply',
      terraform_organization_id: 'org-GRNbCjYNpBB6NEBH',
      terraform_organization_name: 'my-org',
      terraform_workspace_id: 'ws-mbsd5E3Ktt5Rg2Xm',
      terraform_workspace_name: 'my-workspace',
      terraform_run_phase: 'apply',
      terraform_run_id: 'run-X3n1AUXNGWbfECsJ',
    },
    agent: 'terraform-cloud-ws-mbsd5e3ktt5rg2xm-run-X3n1AUXNGWbfECsJ',
    hostile: [
      ['a plan', { terraform_run_phase: 'plan' }, 'claims.terraform_run_phase'],
      ['another workspace', { terraform_workspace_id: 'ws-x' }, 'claims.terraform_workspace_id'],
    ],
  },
  kubernetes: {
    argv: [
      ...[
        'kubernetes',
        '--issuer',
        'https://k8s.example.com',
        '--namespace',
        'prod',
        '--service-account',
        'shop',
      ],
      ...[
        '--service-account-uid',
        'u-1',
        '--jwks-file',
        'jwks.json',
        '--token-review',
        'https://k8s.example.com',
      ],
      ...['--review-token-file', '/run/token'],
    ],
    claims: KUBERNETES,
    agent: `kubernetes-prod-shop-${UUID}`,
    hostile: [
      [
        'an account that was made again',
        kubernetes({ serviceaccount: { name: 'shop', uid: 'u-2' } }),
        'claims.kubernetes.io/serviceaccount/uid',
      ],
      ['another namespace', kubernetes({ namespace: 'dev' }), 'claims.kubernetes.io/namespace'],
      [
        'a token of a secret',
        {
          'kubernetes.io': undefined,
          'kubernetes.io/serviceaccount/namespace': 'prod',
          'kubernetes.io/serviceaccount/service-account.uid': 'u-1',
          exp: undefined,
        },
        'claims.kubernetes.io/namespace',
      ],
      ['a token without a pod', kubernetes({ pod: undefined }), 'claims.kubernetes.io/pod/uid'],
    ],
  },
  spiffe: {
    argv: [
      ...['spiffe', '--trust-domain', 'prod.example.com', '--subject', 'spiffe://prod.example.com/ns/shop'],
      ...['--jwks-file', 'bundle.json'],
    ],
    claims: { iss: undefined, sub: 'spiffe://prod.example.com/ns/shop', aud: [AUDIENCE] },
    agent: 'spiffe-prod.example.com-ns-shop',
    hostile: [
      ['another trust domain', { sub: 'spiffe://prod.example.com.evil/ns/shop' }, 'trust_domain'],
      ['another workload', { sub: 'spiffe://prod.example.com/ns/shop2' }, 'subject'],
    ],
  },
  google: {
    argv: ['google', '--subject', '112010400000000710080'],
    claims: {
      iss: 'https://accounts.google.com',
      sub: '112010400000000710080',
      azp: '112010400000000710080',
      email: 'vm@project.iam.gserviceaccount.com',
      google: { compute_engine: { instance_id: '8174301987', project_number: 739419398126 } },
    },
    agent: 'google-112010400000000710080',
    hostile: [
      ['a person', { sub: '110169484474386276334', email: 'vm@project.iam.gserviceaccount.com' }, 'subject'],
    ],
  },
  azure: {
    argv: ['azure', '--tenant-id', '11111111-0000-4000-8000-000000000000', '--principal-id', UUID],
    claims: {
      iss: 'https://sts.windows.net/11111111-0000-4000-8000-000000000000/',
      sub: UUID,
      oid: UUID,
      tid: '11111111-0000-4000-8000-000000000000',
      appid: '22222222-0000-4000-8000-000000000000',
      idtyp: 'app',
      uti: 'x',
      ver: '1.0',
    },
    agent: 'azure-0184990a',
    hostile: [
      ['another tenant', { iss: 'https://sts.windows.net/99999999-0000-4000-8000-000000000000/' }, 'issuer'],
      ['another identity', { sub: 'x', oid: 'x' }, 'subject'],
    ],
  },
  aws: {
    argv: [
      ...[
        'aws',
        '--issuer',
        'https://abc123-def456.tokens.sts.global.api.aws',
        '--account-id',
        '123456789012',
      ],
      ...['--subject', 'arn:aws:iam::123456789012:role/DataProcessingRole'],
    ],
    claims: {
      iss: 'https://abc123-def456.tokens.sts.global.api.aws',
      sub: 'arn:aws:iam::123456789012:role/DataProcessingRole',
      'https://sts.amazonaws.com/': { aws_account: '123456789012', source_region: 'us-east-1' },
    },
    agent: 'aws-dataprocessingrole',
    hostile: [
      ['another role', { sub: 'arn:aws:iam::123456789012:role/DataProcessingRole2' }, 'subject'],
      [
        'another account',
        { 'https://sts.amazonaws.com/': { aws_account: '999999999999' } },
        'claims.https://sts.amazonaws.com//aws_account',
      ],
    ],
  },
}

let home: string
let env: Record<string, string>
beforeAll(async () => {
  ;({ home, env } = await newHome())
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = { ...publicKey.export({ format: 'jwk' }), kid: 'one' }
  await writeFile(join(home, 'jwks.json'), JSON.stringify({ keys: [key] }))
  const bundle = {
    spiffe_sequence: 1,
    keys: [
      { ...key, use: 'jwt-svid' },
      { kty: 'x', use: 'x509-svid' },
    ],
  }
  await writeFile(join(home, 'bundle.json'), JSON.stringify(bundle))
})

const mayfly = (...argv: string[]) => runCli(argv, { env })
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

async function judge(config: string, claims: object) {
  const now = Math.floor(Date.now() / 1000)
  const payload = { aud: AUDIENCE, iat: now, nbf: now, exp: now + 300, jti: 'j', ...claims }
  await writeFile(join(home, 'token'), `${part({ alg: 'RS256', kid: 'k' })}.${part(payload)}.c2ln\n`)
  return mayfly('identity', 'test', '--token-file', 'token', '--config', config, '--json')
}

describe.each(Object.entries(CASES))('the preset of %s', (name, { argv, claims, agent, hostile }) => {
  const config = `${name.replaceAll(' ', '-')}.yaml`
  beforeAll(async () => {
    const made = await mayfly('identity', 'add', ...argv, '--audience', AUDIENCE, '--scope', 'demo:a')
    expect(made).toMatchObject({ code: 0, stderr: '' })
    await writeFile(join(home, config), made.stdout)
  })

  test('makes an entry without faults, with its reasons, and with a warning only where the event of forks is named', async () => {
    const { code, stderr } = await mayfly('identity', 'check', config)
    const isForeign = argv.includes('pull_request')
    expect({
      code,
      isWarned:
        stderr !==
        `${config}: no faults.
`,
    }).toEqual({ code: 0, isWarned: isForeign })
    const yaml = await readFile(join(home, config), 'utf8')
    expect(yaml).toMatch(/^identities:\n {2}# .*\n(?: {2}# .*\n)* {2}- name: /)
    expect(yaml).toMatch(/# (?:Claims: )?https:\/\//)
    if (/max_age/.test(yaml)) expect(yaml).toMatch(/The\n? *#? ?cost:/)
  })

  test('takes the documented token', async () => {
    const { code, stdout } = await judge(config, claims)
    const judged = JSON.parse(stdout)
    expect(judged.entries).toMatchObject([{ matches: true, agent }])
    expect({ code, verified: judged.verified, by: judged.taken_by }).toEqual({
      code: 0,
      verified: false,
      by: judged.entries[0].entry,
    })
  })

  test.each(hostile)('refuses %s', async (_, over, condition) => {
    const { code, stdout } = await judge(config, { ...claims, ...over })
    expect(JSON.parse(stdout)).toMatchObject({
      taken_by: null,
      entries: [{ matches: false, agent: null, condition }],
    })
    expect(code).toBe(1)
  })
})

test('all presets of the command are here', async () => {
  const { stdout } = await mayfly('identity', 'add', '--help')
  const named = new Set(Object.values(CASES).map(({ argv }) => argv[0]))
  expect(named.size).toBe(11)
  const words = stdout.replace(/\s+/g, ' ')
  for (const name of named) expect(words).toContain(`${name} (`)
})
