"""State that the account keeps where moto keeps none, read through the AWS APIs."""

import pytest

from tests.contract.account.test_functions import make_canary_resources, make_function_resources
from tests.contract.account_stage import Json, Stage, get_error_code

pytestmark = pytest.mark.loopback


def test_codedeploy_rejects_duplicate_and_missing_resources(stage: Stage) -> None:
    stage.deploy("s", make_canary_resources("1", "half"))
    codedeploy = stage.get_client("codedeploy")
    [name] = codedeploy.list_applications()["applications"]
    [group] = codedeploy.list_deployment_groups(applicationName=name)["deploymentGroups"]
    group_fields: Json = {"applicationName": name, "deploymentGroupName": group, "serviceRoleArn": "arn"}
    calls = {
        "ApplicationAlreadyExistsException": lambda: codedeploy.create_application(applicationName=name),
        "ApplicationDoesNotExistException": lambda: codedeploy.create_deployment_group(
            **{**group_fields, "applicationName": "none"}
        ),
        "DeploymentConfigAlreadyExistsException": lambda: codedeploy.create_deployment_config(
            deploymentConfigName="half"
        ),
        "DeploymentConfigDoesNotExistException": lambda: codedeploy.get_deployment_config(deploymentConfigName="none"),
        "DeploymentConfigInUseException": lambda: codedeploy.delete_deployment_config(deploymentConfigName="half"),
        "DeploymentGroupAlreadyExistsException": lambda: codedeploy.create_deployment_group(**group_fields),
        "DeploymentGroupDoesNotExistException": lambda: codedeploy.get_deployment_group(
            applicationName=name, deploymentGroupName="none"
        ),
    }
    assert {code: get_error_code(call) for code, call in calls.items()} == {code: code for code in calls}
    changed = make_canary_resources("1")
    assert stage.deploy("s", changed)["StackStatus"] == "UPDATE_COMPLETE"
    described_group = codedeploy.get_deployment_group(applicationName=name, deploymentGroupName=group)[
        "deploymentGroupInfo"
    ]
    assert described_group["deploymentConfigName"] == "CodeDeployDefault.LambdaCanary10Percent5Minutes"


def test_subscription_filter_requires_an_existing_log_group(stage: Stage) -> None:
    logs = stage.get_client("logs")
    subscription: Json = {
        "filterName": "f",
        "filterPattern": "",
        "destinationArn": "arn:aws:lambda:us-east-1:1:function:a",
    }
    assert (
        get_error_code(lambda: logs.put_subscription_filter(logGroupName="g", **subscription))
        == "ResourceNotFoundException"
    )
    logs.create_log_group(logGroupName="g")
    logs.put_subscription_filter(logGroupName="g", **subscription)
    [described_filter] = logs.describe_subscription_filters(logGroupName="g")["subscriptionFilters"]
    assert described_filter["filterName"] == "f"
    logs.delete_subscription_filter(logGroupName="g", filterName="f")
    delete = logs.delete_subscription_filter
    assert get_error_code(lambda: delete(logGroupName="g", filterName="f")) == "ResourceNotFoundException"


def test_security_group_is_described_with_its_rules_and_cannot_be_deleted_while_in_use(stage: Stage) -> None:
    ec2 = stage.get_client("ec2")
    group = ec2.create_security_group(GroupName="g", Description="d")["GroupId"]
    [described_group] = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert (described_group["IpPermissions"], len(described_group["IpPermissionsEgress"])) == ([], 1)
    assert ec2.describe_security_groups()["SecurityGroups"]
    endpoint = ec2.create_vpc_endpoint(VpcId="vpc-1", ServiceName="s", SecurityGroupIds=[group])["VpcEndpoint"]
    assert get_error_code(lambda: ec2.delete_security_group(GroupId=group)) == "DependencyViolation"
    ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint["VpcEndpointId"]])
    ec2.delete_security_group(GroupId=group)
    assert get_error_code(lambda: ec2.delete_security_group(GroupId=group)) == "InvalidGroup.NotFound"
    rule: Json = {"IpProtocol": "-1"}
    authorize = ec2.authorize_security_group_ingress
    assert get_error_code(lambda: authorize(GroupId=group, IpPermissions=[rule])) == "InvalidGroup.NotFound"


def test_recursive_loop_setting_follows_the_latest_deployed_template(stage: Stage) -> None:
    get_recursion_config = stage.get_client("lambda").get_function_recursion_config
    for number, recursive_loop in enumerate(("Allow", "Terminate", "Allow", None)):
        stage.deploy(
            "s", make_function_resources(str(number), **({"RecursiveLoop": recursive_loop} if recursive_loop else {}))
        )
        assert get_recursion_config(FunctionName="tick")["RecursiveLoop"] == (recursive_loop or "Terminate")


def test_function_settings_are_returned_by_every_lambda_api(stage: Stage) -> None:
    stage.deploy("s", make_function_resources("1", ReservedConcurrentExecutions=3, Timeout=9))
    lambdas = stage.get_client("lambda")
    assert lambdas.get_function(FunctionName="tick")["Concurrency"] == {"ReservedConcurrentExecutions": 3}
    assert lambdas.get_function_concurrency(FunctionName="tick")["ReservedConcurrentExecutions"] == 3
    assert lambdas.get_function_recursion_config(FunctionName="tick")["RecursiveLoop"] == "Terminate"
    configuration = lambdas.get_function_configuration(FunctionName="tick", Qualifier="live")
    assert (configuration["Timeout"], configuration["Version"]) == (9, "1")
    assert [live_alias["Name"] for live_alias in lambdas.list_aliases(FunctionName="tick")["Aliases"]] == ["live"]
    function_fields: Json = {"FunctionName": "tick", "Role": configuration["Role"], "Code": {"ZipFile": b""}}
    assert get_error_code(lambda: lambdas.create_function(**function_fields)) == "ResourceConflictException"
    alias: Json = {"FunctionName": "tick", "Name": "live", "FunctionVersion": "1"}
    assert get_error_code(lambda: lambdas.create_alias(**alias)) == "ResourceConflictException"
    assert get_error_code(lambda: lambdas.get_alias(FunctionName="tick", Name="none")) == "ResourceNotFoundException"
    publish = lambdas.publish_version
    assert get_error_code(lambda: publish(FunctionName="tick", CodeSha256="x")) == "InvalidParameterValueException"
    put_config = lambdas.put_function_event_invoke_config
    put_config(FunctionName="tick", Qualifier="live", MaximumRetryAttempts=1)
    configs = lambdas.list_function_event_invoke_configs(FunctionName="tick")["FunctionEventInvokeConfigs"]
    assert [config["MaximumRetryAttempts"] for config in configs] == [1]
    lambdas.delete_function_event_invoke_config(FunctionName="tick", Qualifier="live")
    get = lambdas.get_function_event_invoke_config
    assert get_error_code(lambda: get(FunctionName="tick", Qualifier="live")) == "ResourceNotFoundException"
    permission: Json = {"FunctionName": "tick", "StatementId": "a", "Action": "lambda:InvokeFunction", "Principal": "1"}
    lambdas.add_permission(**permission)
    assert get_error_code(lambda: lambdas.add_permission(**permission)) == "ResourceConflictException"
    layer = lambdas.publish_layer_version(LayerName="l", Content={"ZipFile": b"zip"})
    assert lambdas.get_layer_version(LayerName="l", VersionNumber=1)["LayerVersionArn"] == layer["LayerVersionArn"]
