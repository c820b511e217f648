import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';

import { title } from '../model/queue';
import { isReady } from '../model/ready';
import type { ICancelArguments } from '../tokens';
import { CommandIDs, ILab } from '../tokens';
import { gpuIcon } from '../widgets/icons';
import { Sidebar } from '../widgets/sidebar';

/** Adds the sidebar and the command that shows it. */
export const sidebarPlugin: JupyterFrontEndPlugin<void> = {
  id: 'gpu-workbench:sidebar',
  description: 'Shows the devices and the queue.',
  autoStart: true,
  requires: [ILab],
  optional: [ILayoutRestorer, ICommandPalette],
  activate: (
    { commands, shell }: JupyterFrontEnd,
    lab: ILab,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null
  ): void => {
    const sidebar = new Sidebar(lab, job => {
      const args: ICancelArguments = {
        job: job.id,
        name: title(job),
        hasBegun: job.state !== 'queued' && !isReady(job)
      };
      void commands.execute(CommandIDs.cancel, { ...args });
    });
    shell.add(sidebar, 'right', { rank: 200, type: 'GPU Workbench' });
    restorer?.add(sidebar, sidebar.id);
    commands.addCommand(CommandIDs.open, {
      label: 'Show GPUs and Queue',
      caption: 'Show the devices of this host and the queue',
      icon: gpuIcon,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => shell.activateById(sidebar.id)
    });
    palette?.addItem({ command: CommandIDs.open, category: 'GPU Workbench' });
  }
};
