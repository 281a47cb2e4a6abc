import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Context } from '../frame/verb.ts'
import { readToken } from './file.ts'
import { given, type IdentitySource } from './source.ts'
import { workloadOf } from './token.ts'

/** Where our manifests mount the token. That of the cluster's API, in kubernetes.io/serviceaccount, is for that API. */
export const MOUNTED = '/var/run/secrets/mayfly/token'
const VARIABLE = 'MAYFLY_IDENTITY_TOKEN_FILE'
const TITLE = 'Kubernetes'

/**
 * A projected token of the service account, with an audience of its own, which kubelet renews at four fifths of its life
 * (kubernetes.io/docs/tasks/configure-pod-container/configure-service-account, "ServiceAccount token volume projection").
 */
export const kubernetes: IdentitySource = {
  name: 'kubernetes',
  title: TITLE,
  needs: `a projected token in ${MOUNTED}, or in the file that ${VARIABLE} names`,
  isHere: (context) => given(context, VARIABLE) !== undefined || existsSync(MOUNTED),
  workload: (context) => workloadOf(readToken(TITLE, pathOf(context))),
  token: async (context) => readToken(TITLE, pathOf(context)),
}

const pathOf = (context: Context) => resolve(context.cwd, given(context, VARIABLE) ?? MOUNTED)
