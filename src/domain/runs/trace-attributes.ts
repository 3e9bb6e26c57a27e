/**
 * What spans say of a run, by OpenTelemetry's conventions for messaging: queueing a run sends a message, an attempt
 * processes it. As text, since nothing of OpenTelemetry is loaded where traces are off.
 */
export function messageAttributes(operation: 'send' | 'process', workflowId: string, runId: string) {
  return {
    'messaging.system': 'execution_service',
    'messaging.operation.name': operation,
    'messaging.operation.type': operation,
    'messaging.destination.name': workflowId,
    'messaging.message.id': runId,
  }
}
