import { asName, asPattern, handedOutAgain, type Line, type Preset } from './preset.ts'

const kubernetes: Preset = {
  name: 'kubernetes',
  summary: 'pods with a projected token of their service account',
  source: 'https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/',
  needs: ['issuer', 'namespace', 'serviceAccountUid'],
  takes: ['serviceAccount', 'jwksFile', 'jwksUri', 'caFile', 'tokenReview', 'reviewTokenFile'],
  use: 'The pod mounts a projected volume with a serviceAccountToken of this audience. The uid: kubectl get serviceaccount NAME -o jsonpath={.metadata.uid}',
  entry: (given, all) => {
    const before = `system:serviceaccount:${given('namespace')}:`
    const subject: Line =
      all.serviceAccount === undefined
        ? { key: 'subject_pattern', value: `${asPattern(before)}.+` }
        : { key: 'subject', value: before + all.serviceAccount }
    return {
      about: asName(`${given('namespace')}-${all.serviceAccount ?? given('serviceAccountUid').slice(0, 8)}`),
      lines: [{ key: 'issuer', value: given('issuer') }, subject],
      claims: [
        { claim: 'kubernetes.io/namespace', value: given('namespace') },
        {
          claim: 'kubernetes.io/serviceaccount/uid',
          value: given('serviceAccountUid'),
          why: 'An account that is deleted can be made again under its name, by whoever may do that.',
        },
        {
          claim: 'kubernetes.io/pod/uid',
          value: '.+',
          isPattern: true,
          why: 'Tokens of secrets, which never end, are bound to no pod.',
        },
      ],
      agentSuffix: '-{kubernetes.io/pod/uid}',
      last: handedOutAgain(
        '1h',
        'The kubelet hands the same token out until it renews it, after up to an hour.',
      ),
    }
  },
}

const spiffe: Preset = {
  name: 'spiffe',
  summary: 'workloads with a JWT-SVID of a trust domain',
  source: 'https://github.com/spiffe/spiffe/blob/main/standards/JWT-SVID.md',
  needs: ['trustDomain', 'subject'],
  takes: ['jwksFile', 'jwksUri', 'caFile'],
  use: 'The workload asks the Workload API for a JWT-SVID with this audience.',
  entry: (given) => ({
    about: asName(given('subject').replace('spiffe://', '')),
    lines: [
      {
        key: 'trust_domain',
        value: given('trustDomain'),
        why: 'JWT-SVIDs may lack iss: the keys of the trust bundle say whose they are.',
      },
      { key: 'subject', value: given('subject') },
    ],
    claims: [],
    last: handedOutAgain('10m', 'SPIRE hands the same JWT-SVID out until half of its life is over.'),
  }),
}

const google: Preset = {
  name: 'google',
  summary: 'machines and services of Google Cloud, by their service account',
  source: 'https://cloud.google.com/compute/docs/instances/verifying-instance-identity',
  needs: ['subject'],
  takes: [],
  use: 'The machine asks its metadata server: instance/service-accounts/default/identity?audience=…&format=full. The subject is the unique id (numeric) of the service account.',
  entry: (given) => ({
    about: given('subject'),
    lines: [
      { key: 'issuer', value: 'https://accounts.google.com' },
      {
        key: 'subject',
        value: given('subject'),
        why: 'Google signs tokens of people with this issuer, too. The unique id is never given to another account; an address is.',
      },
    ],
    claims: [],
    last: handedOutAgain('1h', 'The metadata server hands the same token out again.'),
  }),
}

const azure: Preset = {
  name: 'azure',
  summary: 'machines and services of Azure, by their managed identity',
  source: 'https://learn.microsoft.com/en-us/entra/identity-platform/access-token-claims-reference',
  needs: ['tenantId', 'principalId'],
  takes: ['issuer'],
  use: 'The machine asks for a token with this audience as its resource: register an application for it. The principal is the object id of the managed identity. Tokens of version 2 have the issuer https://login.microsoftonline.com/TENANT/v2.0.',
  entry: (given, all) => ({
    about: given('principalId').slice(0, 8),
    lines: [
      { key: 'issuer', value: all.issuer ?? `https://sts.windows.net/${given('tenantId')}/` },
      { key: 'subject', value: given('principalId') },
    ],
    claims: [
      { claim: 'tid', value: given('tenantId') },
      {
        claim: 'oid',
        value: given('principalId'),
        why: 'The object id is never given to another identity.',
      },
    ],
    last: handedOutAgain('24h', 'Azure hands the same token out for a day.'),
  }),
}

const aws: Preset = {
  name: 'aws',
  summary: 'roles of AWS (outbound web identity)',
  source: 'https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_providers_outbound_token_claims.html',
  needs: ['issuer', 'subject', 'accountId'],
  takes: [],
  use: 'aws iam enable-outbound-web-identity-federation says the issuer of the account; the role asks with sts get-web-identity-token --audience. The subject is the ARN of the role.',
  entry: (given) => ({
    about: asName(given('subject').replace(/^.*\//, '')),
    lines: [
      { key: 'issuer', value: given('issuer'), why: 'Each account has an issuer of its own.' },
      {
        key: 'subject',
        value: given('subject'),
        why: 'A role that is deleted can be made again under its name by whoever may do that in the account.',
      },
    ],
    claims: [{ claim: 'https://sts.amazonaws.com//aws_account', value: given('accountId') }],
  }),
}

export const MACHINES = [kubernetes, spiffe, google, azure, aws]
