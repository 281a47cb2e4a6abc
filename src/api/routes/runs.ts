import { Type } from 'typebox'
import * as requests from '../run-requests.ts'
import * as run from '../runs.ts'
import { optionalBody } from '../shared.ts'
import { admin, agent, leadsTo, type Route } from './route.ts'

const ofRuns = admin('runs')
const own = (place: string) => leadsTo('id', place, 'getRun', 'beatRun', 'endRun')
const any = (place: string) => leadsTo('id', place, 'getAnyRun', 'endAnyRun')

/** Work of an agent, with which its credentials end. */
export const RUNS = {
  'POST /v1/runs': {
    ...agent('run.started'),
    id: 'startRun',
    limits: '10,000 living runs of one agent',
    tags: ['runs'],
    summary: 'Begin a run: what is issued with `run` ends with it',
    description:
      'A run ends when it is deleted, when three of its heartbeats are missed, when an administrator ends it, when its agent ends, or after `runs.max`. Then its credentials and access tokens end, too.',
    body: optionalBody(run.StartRun),
    replies: { 200: run.Run },
    errors: ['insufficient_scope', 'conflict', 'rate_limited'],
    links: own('id'),
  },
  'GET /v1/runs': {
    ...agent(),
    id: 'listRuns',
    tags: ['runs'],
    summary: 'My runs, newest first',
    description: 'With a token that was made for a run: that run.',
    query: run.RunQuery,
    replies: { 200: Type.Array(run.Run) },
    links: own('0/id'),
  },
  'GET /v1/runs/:id': {
    ...agent(),
    id: 'getRun',
    tags: ['runs'],
    summary: 'One of my runs',
    params: run.RunId,
    replies: { 200: run.Run },
    errors: ['not_found'],
    links: own('id'),
  },
  'POST /v1/runs/:id/heartbeat': {
    ...agent(),
    id: 'beatRun',
    tags: ['runs'],
    summary: 'My run still lives',
    description:
      'Send it once every `heartbeat`, and twice as often while the server cannot be reached. Any node takes it; the audit does not record it.',
    params: run.RunId,
    replies: { 200: run.Beaten },
    errors: ['not_found', 'gone'],
  },
  'GET /v1/runs/:id/events': {
    ...agent(),
    limits: '8 streams of one run, 1,000 of one agent, 4,000 of one node',
    id: 'followRun',
    tags: ['runs'],
    summary: 'Which credentials of my run live, as server-sent events',
    description:
      '`event: state` comes first, and again whenever a credential has ended or been added, or the run has ended; its `data` is a `RunState`. `event: alive` comes at least every 5 seconds or every heartbeat, whichever is less, as long as the server can tell. When the run has ended, a last `state` says so and the stream ends; it ends with the token, too. There is nothing to resume: a new stream begins with the state.',
    params: run.RunId,
    replies: { 200: Type.String() },
    produces: ['text/event-stream'],
    errors: ['not_found', 'rate_limited'],
  },
  'POST /v1/runs/:id/requests': {
    ...agent('placeholder.misused'),
    ofRun: true,
    limits: '20 batches a second of one agent; 1,000,000 lines of a run are kept',
    id: 'recordRequests',
    tags: ['runs'],
    summary: 'What a proxy has done for my run',
    description:
      'Of a run that lives, or that ended in the last minute. A line with the decision `misused` is an entry of the audit, too; of one batch at most 20 are. Lines beyond those that are kept are counted.',
    params: run.RunId,
    body: requests.RequestBatch,
    replies: { 204: Type.Null() },
    errors: ['not_found', 'gone', 'rate_limited', 'audit_unavailable'],
  },
  'GET /v1/runs/:id/requests': {
    ...agent(),
    id: 'listRunRequests',
    tags: ['runs'],
    summary: 'The requests of my run that a proxy has told of, newest first',
    params: run.RunId,
    query: requests.RequestQuery,
    replies: { 200: Type.Array(requests.RecordedRequest) },
    errors: ['not_found'],
  },
  'DELETE /v1/runs/:id': {
    ...agent('run.ended'),
    ofRun: true,
    id: 'endRun',
    tags: ['runs'],
    summary: 'End my run, with all its credentials; repeating it changes nothing',
    params: run.RunId,
    query: run.EndQuery,
    replies: { 204: Type.Null() },
    errors: ['not_found', 'conflict'],
  },
  'GET /v1/admin/runs': {
    ...ofRuns('admin:agents:read'),
    id: 'listAllRuns',
    summary: 'Runs of all agents, newest first',
    query: run.AnyRunQuery,
    replies: { 200: Type.Array(run.Run) },
    links: any('0/id'),
  },
  'GET /v1/admin/runs/:id': {
    ...ofRuns('admin:agents:read'),
    id: 'getAnyRun',
    summary: 'A run of any agent',
    params: run.RunId,
    replies: { 200: run.Run },
    errors: ['not_found'],
    links: any('id'),
  },
  'GET /v1/admin/runs/:id/requests': {
    ...ofRuns('admin:agents:read'),
    id: 'listAnyRunRequests',
    summary: 'The requests of a run that a proxy has told of, newest first',
    params: run.RunId,
    query: requests.RequestQuery,
    replies: { 200: Type.Array(requests.RecordedRequest) },
    errors: ['not_found'],
  },
  'DELETE /v1/admin/runs/:id': {
    ...ofRuns('admin:agents:write', 'run.ended'),
    id: 'endAnyRun',
    summary: 'End a run of any agent, with all its credentials; repeating it changes nothing',
    params: run.RunId,
    replies: { 204: Type.Null() },
    errors: ['not_found', 'conflict'],
  },
} as const satisfies Record<string, Route>
