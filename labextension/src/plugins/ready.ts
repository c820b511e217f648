import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { ISessionContext } from '@jupyterlab/apputils';
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import { PageConfig, PathExt } from '@jupyterlab/coreutils';

import type { JobView } from '../model/protocol';
import { title } from '../model/queue';
import { pathBelow, readyMessage, ReadyWatch } from '../model/ready';
import type { ICancelArguments } from '../tokens';
import { CommandIDs, ILab } from '../tokens';

/** Where a ticket's kernel is wanted. */
interface IPlace {
  /** Of the kernelspec. */
  kernel: string;
  /** Of the notebook or console, below the server's root. */
  path: string;
}

/** Says when the GPU that a kernel was refused for the time being is ready. */
export const readyPlugin: JupyterFrontEndPlugin<void> = {
  id: 'gpu-workbench:ready',
  description: 'Says when a GPU that a kernel waits for is ready.',
  autoStart: true,
  requires: [ILab],
  activate: (app: JupyterFrontEnd, lab: ILab): void => {
    const watch = new ReadyWatch(job => {
      const id = tell(app, job);
      return () => Notification.dismiss(id);
    });
    lab.changed.connect(() => watch.look(lab.status?.jobs ?? []));
  }
};

function tell(app: JupyterFrontEnd, job: JobView): string {
  const place = placeOf(app, job);
  const forward: Notification.IAction = place
    ? {
        label: 'Start kernel',
        displayType: 'accent',
        callback: () => void start(app, place)
      }
    : { label: 'Show queue', callback: () => void app.commands.execute(CommandIDs.open) };
  const args: ICancelArguments = { job: job.id, name: title(job), hasBegun: false };
  const back: Notification.IAction = {
    label: 'Give it back',
    callback: () => void app.commands.execute(CommandIDs.cancel, { ...args })
  };
  return Notification.info(readyMessage(job, place ? 'Start its kernel' : 'Ask for it again'), {
    autoClose: false,
    actions: [forward, back]
  });
}

/** Where the kernel is to be started; null where only the user knows. */
function placeOf(app: JupyterFrontEnd, job: JobView): IPlace | null {
  const specs = Object.values(app.serviceManager.kernelspecs.specs?.kernelspecs ?? {});
  const kernel = specs.find(spec => spec?.display_name === job.name)?.name;
  const path = pathBelow(PageConfig.getOption('gpuWorkbenchRoot'), job.notebook ?? '');
  if (kernel === undefined || path === null) {
    return null;
  }
  return widgetOf(app, path) || path.endsWith('.ipynb') ? { kernel, path } : null;
}

async function start(app: JupyterFrontEnd, { kernel, path }: IPlace): Promise<void> {
  const open = widgetOf(app, path);
  if (!open) {
    await app.commands.execute('docmanager:open', { path, kernel: { name: kernel } });
    return;
  }
  app.shell.activateById(open.id);
  if (open.session.session?.kernel && !(await isSure(open.session.name))) {
    return;
  }
  // A start that fails is told by JupyterLab itself; the ticket and its notification stay.
  await open.session.changeKernel({ name: kernel }).catch(() => null);
}

/** The open notebook or console of which the server says `path`, and its session. */
function widgetOf(
  { shell }: JupyterFrontEnd,
  path: string
): { id: string; session: ISessionContext } | null {
  for (const widget of shell.widgets('main')) {
    const { sessionContext: session } = widget as { sessionContext?: ISessionContext };
    // So the server names a session to its kernel: the folder of its path and its name.
    if (session && PathExt.join(PathExt.dirname(session.path), session.name) === path) {
      return { id: widget.id, session };
    }
  }
  return null;
}

async function isSure(name: string): Promise<boolean> {
  const answer = await showDialog({
    title: `Replace the kernel of ${name}?`,
    defaultButton: 0,
    body: 'It runs on another kernel now, whose variables are lost.',
    buttons: [
      Dialog.cancelButton({ label: 'Keep it' }),
      Dialog.warnButton({ label: 'Replace the kernel' })
    ]
  });
  return answer.button.accept;
}
