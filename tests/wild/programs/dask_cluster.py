"""dask: a local cluster with two processes."""

from dask.distributed import Client, LocalCluster
from small_model import show, train

if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        for future in [client.submit(train, None, seed, 40) for seed in range(2)]:
            show(future.result())
