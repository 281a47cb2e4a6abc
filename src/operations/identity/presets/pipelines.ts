import { NOT_PARSED, onePerJob, type Preset } from './preset.ts'

const buildkite: Preset = {
  name: 'buildkite',
  summary: 'jobs of Buildkite',
  source: 'https://buildkite.com/docs/agent/cli/reference/oidc',
  needs: ['organizationId', 'pipelineId'],
  takes: ['issuer'],
  use: 'The job asks for the token: buildkite-agent oidc request-token --audience … --claim organization_id --claim pipeline_id. Whether builds of forks run is a setting of the pipeline.',
  entry: (given, all) => ({
    about: `pipeline-${given('pipelineId').slice(0, 8)}`,
    lines: [{ key: 'issuer', value: all.issuer ?? 'https://agent.buildkite.com' }, NOT_PARSED],
    claims: [
      {
        claim: 'organization_id',
        value: given('organizationId'),
        why: 'All organizations have the same issuer. Ids stay; the names in sub can be taken by somebody else.',
      },
      { claim: 'pipeline_id', value: given('pipelineId') },
    ],
    agentSuffix: '-{job_id}',
  }),
}

const circleci: Preset = {
  name: 'circleci',
  summary: 'jobs of CircleCI',
  source: 'https://circleci.com/docs/guides/permissions-authentication/openid-connect-tokens/',
  needs: ['organizationId', 'projectId'],
  takes: [],
  use: 'The job asks for a token with this audience: circleci run oidc get --claims. That of CIRCLE_OIDC_TOKEN has the organization as its audience.',
  entry: (given) => ({
    about: `project-${given('projectId').slice(0, 8)}`,
    lines: [{ key: 'issuer', value: `https://oidc.circleci.com/org/${given('organizationId')}` }, NOT_PARSED],
    claims: [
      { claim: 'oidc.circleci.com/project-id', value: given('projectId') },
      {
        claim: 'oidc.circleci.com/ssh-rerun',
        value: 'false',
        why: 'Whoever debugs a job by SSH would have its login.',
      },
    ],
  }),
}

const terraform: Preset = {
  name: 'terraform-cloud',
  summary: 'runs of HCP Terraform, also of Terraform Enterprise (--issuer)',
  source:
    'https://developer.hashicorp.com/terraform/cloud-docs/workspaces/dynamic-provider-credentials/workload-identity-tokens',
  needs: ['organizationId', 'workspaceId'],
  takes: ['runPhase', 'issuer', 'caFile'],
  use: 'The workspace sets TFC_WORKLOAD_IDENTITY_AUDIENCE to this audience.',
  entry: (given, all) => ({
    about: given('workspaceId').toLowerCase(),
    lines: [{ key: 'issuer', value: all.issuer ?? 'https://app.terraform.io' }, NOT_PARSED],
    claims: [
      { claim: 'terraform_organization_id', value: given('organizationId') },
      {
        claim: 'terraform_workspace_id',
        value: given('workspaceId'),
        why: 'Ids stay; the name of a workspace can be taken by another.',
      },
      {
        claim: 'terraform_run_phase',
        value: all.runPhase ?? 'apply',
        why: 'A plan runs before anybody agreed to it. Give plans an entry of their own, with fewer scopes.',
      },
    ],
    agentSuffix: '-{terraform_run_id}',
    last: onePerJob('1h', 'There is one token for a phase, made before it begins.'),
  }),
}

export const PIPELINES = [buildkite, circleci, terraform]
